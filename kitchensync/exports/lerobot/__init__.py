"""LeRobot data sets: episodes of one recording each, and statistics of their features."""
