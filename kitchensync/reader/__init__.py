"""Reading of a recording: all streams on one clock, steps and errors. `kitchensync.open` opens it."""
