"""Checks of every request: connection, host name, body, access."""
