"""Tables that models are trained and tested with, made of a data set in memory: no files, no network, no database."""
