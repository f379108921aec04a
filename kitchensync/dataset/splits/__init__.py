"""Splits of a data set for training, validation and test: rules that make them, and checks of the parts. Pure."""
