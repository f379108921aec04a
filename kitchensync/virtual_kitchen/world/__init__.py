"""The simulated world: one head, one room, and a clock for each device."""
