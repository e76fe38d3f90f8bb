"""Responses of redirects and errors, with their places in segments."""

from alembic import op

from curtsy.store.migrations import statements

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    for statement in statements(revision, op.get_bind().dialect.name):
        op.get_bind().exec_driver_sql(statement)
