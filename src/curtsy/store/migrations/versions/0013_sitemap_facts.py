"""Columns for what a sitemap says about a URL."""

from alembic import op

from curtsy.store.migrations import statements

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    for statement in statements(revision, op.get_bind().dialect.name):
        op.get_bind().exec_driver_sql(statement)
