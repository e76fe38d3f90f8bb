"""Columns for the kind of a document and the pages of its sources."""

from alembic import op

from curtsy.store.migrations import statements

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    for statement in statements(revision, op.get_bind().dialect.name):
        op.get_bind().exec_driver_sql(statement)
