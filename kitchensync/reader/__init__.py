"""The way to read a recording: every stream on one clock, steps, errors. `kitchensync.open` opens it."""
