"""One recording in the files of other tools, made from `kitchensync.open`."""
