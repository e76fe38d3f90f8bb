"""Columns for the page that first linked to a URL, and for the target of its redirect."""

from alembic import op

from curtsy.store.migrations import statements

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    for statement in statements(revision, op.get_bind().dialect.name):
        op.get_bind().exec_driver_sql(statement)
