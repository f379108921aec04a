"""One calibration from films and recordings to results on the disk."""
