"""Questions that wait for a batch of a model's server, and its batches."""

from alembic import op

from curtsy.store.migrations import statements

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    for statement in statements(revision, op.get_bind().dialect.name):
        op.get_bind().exec_driver_sql(statement)
