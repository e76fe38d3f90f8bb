"""The first schema: everything a crawl needs, from its row to its pages.

The statements are in 0001_<database>.sql, frozen: later changes need a migration of their own.
"""

from alembic import op

from curtsy.store.migrations import statements

revision = "0001"
down_revision = None


def upgrade() -> None:
    for statement in statements(revision, op.get_bind().dialect.name):
        op.get_bind().exec_driver_sql(statement)
