"""A simulated kitchen that speaks the real protocols and writes down the truth."""
