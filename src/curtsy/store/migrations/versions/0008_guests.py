"""Requests of external clients: other crawlers that use our slots and keep their work here."""

from alembic import op

from curtsy.store.migrations import statements

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    for statement in statements(revision, op.get_bind().dialect.name):
        op.get_bind().exec_driver_sql(statement)
