"""Intended errors: scripts with missing and swapped steps, and hints for changed steps."""
