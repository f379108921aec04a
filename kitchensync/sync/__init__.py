"""Clocks, stamps, alignment and the frame index: everything on one time axis."""
