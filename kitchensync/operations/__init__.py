"""What people do on the tablet, as operations, and the steps and errors that they add up to."""
