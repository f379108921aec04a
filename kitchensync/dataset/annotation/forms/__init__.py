"""What annotation tools read and write, and how two annotations agree: pure, without files and network."""
