"""The tablet's screen clock in camera pictures: found, read, and put on the cameras' times; pure."""
