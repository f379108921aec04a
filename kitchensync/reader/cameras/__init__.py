"""Cameras of a recording in one space: their pictures, poses and lenses."""
