"""Queues of hosts that do not answer keep what the first failure said."""

from alembic import op

from curtsy.store.migrations import statements

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    for statement in statements(revision, op.get_bind().dialect.name):
        op.get_bind().exec_driver_sql(statement)
