"""Aligning two clocks from what their sensors felt and heard: pure numerics."""
