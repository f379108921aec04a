"""What people tell of a film: its versions, its sound, the words that steps are told by."""
