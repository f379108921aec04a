"""Jobs over many recordings: `kitchensync batch`."""
