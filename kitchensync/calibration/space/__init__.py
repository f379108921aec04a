"""A recording in one space: clouds, meshes, overlays, the viewer."""
