"""Lenses, mounts and inertial sensors estimated from observations. Pure."""
