"""URLs keep the page that named them first, and where they redirect to."""

from alembic import op

from curtsy.store.migrations import statements

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    for statement in statements(revision, op.get_bind().dialect.name):
        op.get_bind().exec_driver_sql(statement)
