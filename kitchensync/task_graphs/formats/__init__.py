"""File formats of task graphs, recipes and annotations: one module per format, each parses strictly and writes."""
