"""Orders of a task graph: closure, parts, uniform samples, sets of unlike orders."""
