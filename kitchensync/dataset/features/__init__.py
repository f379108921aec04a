"""Vectors that stand for a second or two of a film, by any extractor."""
