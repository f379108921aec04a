"""GoPro cameras: control, and the contents of their files."""
