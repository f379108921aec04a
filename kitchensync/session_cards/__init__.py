"""The session card of a recording: its quality at the end of the session and after synchronization."""
