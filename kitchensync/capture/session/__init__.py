"""One recording from its start to its finalized manifest, and what recovers an interrupted one."""
