"""One session of cooking: what is chosen and drawn, the checklist, the devices, the outcome."""
