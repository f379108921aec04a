"""Cameras of a recording in one space: their frames, poses and lenses."""
