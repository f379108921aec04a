"""Errors on purpose: scripts with missing and swapped steps, and hints for wrong wordings."""
