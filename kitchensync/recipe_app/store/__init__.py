"""The app's database: one append-only log of operations, and tables that are rebuilt from it."""
