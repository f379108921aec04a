"""What people do, as operations, and what the operations of one recording add up to. Pure."""
