"""A GoPro with its HTTP interface and the files that it makes."""
