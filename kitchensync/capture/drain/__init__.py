"""From the queue to sealed chunks."""
