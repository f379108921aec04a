"""Data of devices: bytes on a wire or in a file, decoded into packets with times."""
