"""Tables for records: definitions, sources, confidence, versions, reviews, answers of models."""

from alembic import op

from curtsy.store.migrations import statements

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    for statement in statements(revision, op.get_bind().dialect.name):
        op.get_bind().exec_driver_sql(statement)
