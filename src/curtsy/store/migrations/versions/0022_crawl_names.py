"""Name, tags and owner of a crawl; owner of a schedule; the runs of a schedule by an index."""

from alembic import op

from curtsy.store.migrations import statements

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    for statement in statements(revision, op.get_bind().dialect.name):
        op.get_bind().exec_driver_sql(statement)
