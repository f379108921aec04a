"""The commands of storage."""
