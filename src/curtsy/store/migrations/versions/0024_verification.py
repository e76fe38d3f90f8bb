"""Whether a crawl verifies values, and its second model."""

from alembic import op

from curtsy.store.migrations import statements

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    for statement in statements(revision, op.get_bind().dialect.name):
        op.get_bind().exec_driver_sql(statement)
