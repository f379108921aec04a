"""Calibrations: read videos and recordings, estimate, write the results to disk."""
