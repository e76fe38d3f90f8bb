"""Pages that wait for a browser: an index of their own, and the counts of hosts that need one."""

from alembic import op

from curtsy.store.migrations import statements

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    for statement in statements(revision, op.get_bind().dialect.name):
        op.get_bind().exec_driver_sql(statement)
