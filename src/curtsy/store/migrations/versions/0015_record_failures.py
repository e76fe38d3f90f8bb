"""A column that says why the language model gave no answer for a record."""

from alembic import op

from curtsy.store.migrations import statements

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    for statement in statements(revision, op.get_bind().dialect.name):
        op.get_bind().exec_driver_sql(statement)
