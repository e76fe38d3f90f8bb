"""Alembic's entry: runs the migrations on the connection that `migrate` hands over, inside its transaction."""

from alembic import context

from curtsy.store.schema import with_postgresql

context.configure(connection=context.config.attributes["connection"], target_metadata=with_postgresql())
with context.begin_transaction():
    context.run_migrations()
