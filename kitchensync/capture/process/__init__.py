"""Processes of a recording: start, log, health, heartbeats and how they end."""
