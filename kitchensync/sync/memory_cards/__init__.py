"""Cameras' memory cards: which files belong to which recording, and when they may go."""
