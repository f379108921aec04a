"""The HoloLens 2 with an hl2ss server: one file for each stream, and the client."""
