"""Live pictures of running recordings: kept in memory alone, shown at the desk."""
