"""The commands `calibrate`, `view`, `cloud`, `mesh` and `overlay`."""
