"""Tables and indexes for lists, deletion and retention."""

from alembic import op

from curtsy.store.migrations import statements

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    for statement in statements(revision, op.get_bind().dialect.name):
        op.get_bind().exec_driver_sql(statement)
