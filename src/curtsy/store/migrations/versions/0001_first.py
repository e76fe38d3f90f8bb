"""The first schema: everything a crawl needs, from its row to its pages.

The statements stand in 0001_<database>.sql, frozen: later changes of `tables.py` need a migration of their own.
"""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    script = Path(__file__).with_name(f"0001_{op.get_bind().dialect.name}.sql").read_text("utf-8")
    for statement in script.split(";\n"):
        if statement.strip():
            op.get_bind().exec_driver_sql(statement)
