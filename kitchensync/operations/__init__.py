"""What people do, as operations, and the steps and errors that the operations of one recording add up to."""
