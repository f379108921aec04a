"""Questions about objects over time, each with the moments of the film that answer it."""
