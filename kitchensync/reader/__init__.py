"""A recording as a researcher reads it: every stream alike, on one clock. `kitchensync.open` is the way in."""
