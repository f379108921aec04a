"""A recording in one coordinate frame: point clouds, meshes, overlays and the viewer."""
