"""Fitting a line between two clocks: windows, pairs, residuals, noise. Pure numerics."""
