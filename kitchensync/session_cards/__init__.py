"""The card of a recording: its quality in one page, at the end of a session and after synchronization."""
