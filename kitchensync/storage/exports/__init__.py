"""What a recording becomes for others: films that any player shows."""
