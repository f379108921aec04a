"""Monitor a running recording from another process: read its state, apply rules, show and export the result."""
