"""One film of what all cameras saw at the same instants."""
