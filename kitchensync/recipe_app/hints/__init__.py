"""Hints of a language model: asked of a server, kept in the log, reviewed by a person before a tablet has them."""
