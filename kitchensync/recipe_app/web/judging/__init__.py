"""What people mark, judge and tell of films and graphs, each alone, over HTTP."""
