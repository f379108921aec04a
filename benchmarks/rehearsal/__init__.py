"""The fault harness: recordings of the virtual kitchen, each with one fault, and the account of every packet."""
