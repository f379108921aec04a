"""The one model of time: clocks of devices on the capture clock, clock maps, session time. Pure."""
