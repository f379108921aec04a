"""What people say about a film while it waits: kept as it was spoken, recognized offline, parsed, and released."""
