"""Estimates of lenses, mounts and inertial sensors from observations. Pure functions."""
