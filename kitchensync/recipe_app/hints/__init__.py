"""Hints of a language model, requested from a server."""
