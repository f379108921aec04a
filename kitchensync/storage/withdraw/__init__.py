"""A withdrawal: a recording and its copies are destroyed, and a tombstone says that they were."""
