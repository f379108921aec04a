"""Sources of a data set: a lab's own recordings, or a folder in the published form."""
