"""Formats of annotation tools, and agreement of two annotations: pure, without files and network."""
