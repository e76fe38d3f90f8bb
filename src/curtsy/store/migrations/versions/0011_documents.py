"""Pages that are documents say of what kind, and sources of documents know their pages."""

from alembic import op

from curtsy.store.migrations import statements

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    for statement in statements(revision, op.get_bind().dialect.name):
        op.get_bind().exec_driver_sql(statement)
