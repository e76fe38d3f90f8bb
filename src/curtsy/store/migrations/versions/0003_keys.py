"""API keys, and which crawl an Idempotency-Key made."""

from alembic import op

from curtsy.store.migrations import statements

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    for statement in statements(revision, op.get_bind().dialect.name):
        op.get_bind().exec_driver_sql(statement)
