"""Queues that wait in the store, in the order of their next time."""

from alembic import op

from curtsy.store.migrations import statements

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    for statement in statements(revision, op.get_bind().dialect.name):
        op.get_bind().exec_driver_sql(statement)
