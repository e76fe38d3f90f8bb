"""The rates of each crawl in the last hours; how often a host refused or did not answer a crawl."""

from alembic import op

from curtsy.store.migrations import statements

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    for statement in statements(revision, op.get_bind().dialect.name):
        op.get_bind().exec_driver_sql(statement)
