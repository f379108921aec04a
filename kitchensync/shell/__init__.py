"""Helpers that know nothing of recordings: answers, progress, files, processes, clocks."""
