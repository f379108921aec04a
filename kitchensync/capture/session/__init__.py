"""One recording from its start to its finalized manifest, and the recovery of an interrupted one."""
