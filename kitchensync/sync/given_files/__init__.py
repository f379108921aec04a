"""What `kitchensync align` is given: arrays, films and tables of rotation rates that belong to no recording."""
