"""Live frames of running recordings for the desk, kept in memory only."""
