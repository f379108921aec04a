"""Check a computer and its devices before a session."""
