"""How the processes that packets pass through keep their memory."""

MEMORY_KEPT = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(128 << 20)}
"""For glibc: keep the memory of packets for the next ones. To be given fresh pages for every picture of a raw depth
camera costs more than to copy it."""
