"""Measures of what models answered, by the published equations: numbers in, numbers out."""
