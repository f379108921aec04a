"""Who may do what: people and their secrets, devices, signed-in sessions."""
