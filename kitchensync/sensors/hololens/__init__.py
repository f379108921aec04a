"""The HoloLens 2 as seen through an hl2ss server: one file a stream, and the client."""
