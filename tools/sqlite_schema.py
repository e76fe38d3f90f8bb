"""Write the schema of a new SQLite database: what all revisions of the migrations make together.

    python tools/sqlite_schema.py

A new database is created from this file, in a fifth of the time. Run it after a new revision; a test compares the two.
"""

from __future__ import annotations

import sqlite3

from curtsy.store import migrations

HEAD = "-- What all revisions make together, for new databases. Made by tools/sqlite_schema.py.\n"


def schema() -> str:
    """The statements that make the tables and indexes of the newest revision, in the order of their creation."""
    with sqlite3.connect(":memory:") as database:
        for revision in migrations.REVISIONS:
            database.executescript(";\n".join(migrations.statements(revision, "sqlite")))
        rows = database.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'")
        return HEAD + "".join(f"{sql};\n" for (sql,) in rows)


if __name__ == "__main__":
    migrations.WHOLE.write_text(schema(), "utf-8")
