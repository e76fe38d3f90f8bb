"""The usage of language models, by schema and field."""

from alembic import op

from curtsy.store.migrations import statements

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    for statement in statements(revision, op.get_bind().dialect.name):
        op.get_bind().exec_driver_sql(statement)
