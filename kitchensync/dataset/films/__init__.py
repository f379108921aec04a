"""The small video of a recording: made for review at the desk and for examples, with what is known of each frame."""
