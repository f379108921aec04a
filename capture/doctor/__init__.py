"""Look over a computer and its devices before a session."""
