"""What a device says: bytes on a wire or in a file, made into packets with times."""
