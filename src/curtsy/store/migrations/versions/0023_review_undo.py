"""What a decision about a record replaced, to undo it; decisions about many records."""

from alembic import op

from curtsy.store.migrations import statements

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    for statement in statements(revision, op.get_bind().dialect.name):
        op.get_bind().exec_driver_sql(statement)
