"""Parsing of recipe texts: amounts, actions, times and hazards."""
