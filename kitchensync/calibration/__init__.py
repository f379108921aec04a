"""Calibration of cameras and sensors; depth, hands and gaze in one space."""
