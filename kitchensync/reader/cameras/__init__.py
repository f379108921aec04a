"""Cameras of a recording in one space: what each saw, where it was, how its lens bends."""
