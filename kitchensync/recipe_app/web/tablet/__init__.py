"""The tablet's routes: sign-in, recordings, operations, cached files."""
