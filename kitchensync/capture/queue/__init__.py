"""The queue of a recording: one Redis stream per sensor stream, its writers, readers and server."""
