"""Annotations, data sets made of recordings, their exports, splits, statistics and measures."""
