"""Tables to train and test models with, made from a data set in memory: no files, no network, no database."""
