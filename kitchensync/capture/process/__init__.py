"""Processes of a recording: start, log, health, heartbeats and their end."""
