"""A column for the message of the first failure of a host that does not answer."""

from alembic import op

from curtsy.store.migrations import statements

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    for statement in statements(revision, op.get_bind().dialect.name):
        op.get_bind().exec_driver_sql(statement)
