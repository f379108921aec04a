"""The commands of synchronization."""
