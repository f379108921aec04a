"""The fault harness: recordings of the virtual kitchen with one thing going wrong in each, and the account after."""
