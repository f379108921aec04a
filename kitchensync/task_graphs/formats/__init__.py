"""Task graphs, recipes and annotations as files: one module a format, each read strictly and written back."""
