"""Files that lie in a recording beside its chunks: those of cameras, annotators and session cards."""
