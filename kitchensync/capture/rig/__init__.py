"""The rig file: the devices of a recording and their settings."""
