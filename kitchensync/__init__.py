"""The `kitchensync` command: the only place that may import all the other folders."""
