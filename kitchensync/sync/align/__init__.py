"""Alignment of two clocks from recorded motion and sound: pure numerics."""
