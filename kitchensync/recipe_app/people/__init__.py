"""Access control: people and their secrets, devices, sessions."""
