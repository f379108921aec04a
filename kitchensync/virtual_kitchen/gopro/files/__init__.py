"""The films that the virtual GoPro makes."""
