"""What belongs to this installation and to no recording: its key, and its list of what it wrote elsewhere."""
