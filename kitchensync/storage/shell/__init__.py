"""What all commands share: outputs, paths, progress, refusals."""
