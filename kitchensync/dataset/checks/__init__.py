"""What can be wrong with a data set, a file for each matter; `check.py` asks them all."""
