"""What a disk keeps: durable writes, guarded space, proven bytes."""
