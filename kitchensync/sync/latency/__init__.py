"""When a camera's pictures are taken, from the pictures and the gyroscope. Pure numerics."""
