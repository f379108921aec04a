"""Write the packets of the queue to sealed chunks."""
