"""What is known of all recordings below a folder, asked without reading each: a view that is rebuilt at any time."""
