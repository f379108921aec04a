"""What every request has to pass: the connection, the host name, its body, who may ask."""
