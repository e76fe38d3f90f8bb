"""An index that counts the dead letters of stages for the progress of a crawl."""

from alembic import op

from curtsy.store.migrations import statements

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    for statement in statements(revision, op.get_bind().dialect.name):
        op.get_bind().exec_driver_sql(statement)
