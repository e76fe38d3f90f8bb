"""Requests over the API and the dashboard that changed something, and refused ones."""

from alembic import op

from curtsy.store.migrations import statements

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    for statement in statements(revision, op.get_bind().dialect.name):
        op.get_bind().exec_driver_sql(statement)
