"""A column for the last check of a template by the model."""

from alembic import op

from curtsy.store.migrations import statements

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    for statement in statements(revision, op.get_bind().dialect.name):
        op.get_bind().exec_driver_sql(statement)
