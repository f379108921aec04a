"""The queue of a recording: one Redis stream a sensor, in and out, and its server."""
