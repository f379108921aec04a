"""What there is to see, hear and feel: one head, one room, and a clock a device."""
