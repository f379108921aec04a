"""Review over HTTP: people mark, judge and narrate videos and graphs independently."""
