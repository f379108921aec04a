"""A HoloLens 2 that runs an hl2ss server, byte for byte."""
