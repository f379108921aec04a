"""Destroying what was recorded in a privacy pause: whole chunks, spans of films, in copies too; hashes stay."""
