"""Where things are and how cameras see them: frames of reference, lenses, poses, clouds. Pure."""
