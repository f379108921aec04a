"""What the tablet asks for over HTTP: the way in, recordings, operations, files to keep."""
