"""What alembic runs: the migrations, inside the transaction that `database.open_database` has begun."""

from __future__ import annotations

from alembic import context

from kitchensync.recipe_app.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=False,  # the caller's transaction holds all of it
    render_as_batch=True,
)
context.run_migrations()
