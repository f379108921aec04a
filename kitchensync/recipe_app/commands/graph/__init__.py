"""The command `graph`: task graphs, orders, error scripts, hints and scores."""
