"""Pages that go with a data set."""
