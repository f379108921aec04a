"""The command `export`: data sets in the forms that others train and ask with."""
