"""A column for pages that could not be read completely."""

from alembic import op

from curtsy.store.migrations import statements

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    for statement in statements(revision, op.get_bind().dialect.name):
        op.get_bind().exec_driver_sql(statement)
