"""What synchronization answers, and keeps under sync/ of a recording."""
