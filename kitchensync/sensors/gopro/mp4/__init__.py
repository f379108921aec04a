"""MP4 files: their boxes, tables of samples and GPMF telemetry; joining, cutting and stripping them."""
