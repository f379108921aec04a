"""Bring recordings to other stores, prove the copies, free and pack local files."""
