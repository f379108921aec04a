"""Step boundaries marked on the film, in the browser."""
