"""The index tables of a recording: frames, poses, events."""
