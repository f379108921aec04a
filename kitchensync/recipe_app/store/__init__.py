"""The app's database: an append-only log of operations, and tables derived from it."""
