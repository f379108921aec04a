"""Video files of the virtual GoPro."""
