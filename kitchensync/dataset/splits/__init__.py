"""Parts of a data set to train, validate and test with: rules that make them, and what the parts hold. Pure."""
