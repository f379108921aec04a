"""Judging what was done against a task graph, and checking the graph itself."""
