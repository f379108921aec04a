"""Narrations of a video: their versions, their sound, and the grammar of step phrases."""
