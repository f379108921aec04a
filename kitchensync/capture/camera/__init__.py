"""Cameras that record by themselves: start, watch, stop, fetch."""
