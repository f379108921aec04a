"""A recording on disk: names, sealed chunks, manifest, events, verification."""
