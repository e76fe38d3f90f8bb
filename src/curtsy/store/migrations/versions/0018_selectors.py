"""Templates of pages, and the selectors that are learned for them."""

from alembic import op

from curtsy.store.migrations import statements

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    for statement in statements(revision, op.get_bind().dialect.name):
        op.get_bind().exec_driver_sql(statement)
