"""Schedules and their runs, the outbox, results of stages, records."""

from alembic import op

from curtsy.store.migrations import statements

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    for statement in statements(revision, op.get_bind().dialect.name):
        op.get_bind().exec_driver_sql(statement)
