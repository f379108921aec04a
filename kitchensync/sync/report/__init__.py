"""One self-contained page by which a person can judge a recording."""
