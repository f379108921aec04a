"""Camera models and frames of reference: everything in one space."""
