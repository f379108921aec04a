"""Contents of a GoPro's files, with the chapters of a recording as one video."""
