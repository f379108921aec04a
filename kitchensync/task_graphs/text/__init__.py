"""Reading recipe texts: amounts, actions, times, what is dangerous."""
