"""What synchronization reads from a recording: headset, cameras, films, sound."""
