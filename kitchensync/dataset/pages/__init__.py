"""HTML pages of a data set."""
