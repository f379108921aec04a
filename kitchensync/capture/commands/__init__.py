"""The commands of recording."""
