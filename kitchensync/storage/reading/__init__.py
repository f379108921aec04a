"""What a stored stream holds, decoded when asked for: samples, pictures, depth, records, sound."""
