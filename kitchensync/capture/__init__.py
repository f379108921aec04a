"""Live recording: sessions, processes and the queue between the sensors and the disk."""
