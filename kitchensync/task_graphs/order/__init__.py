"""Orders of a task graph: closure, parts, uniform samples, diverse sets."""
