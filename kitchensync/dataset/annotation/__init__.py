"""Step times that people marked in films with other tools: given to them, taken back, compared, accepted."""
