"""The command `release`: data sets made, split, counted, checked and sent."""
