"""The tablet app: choose a recipe, follow its steps, log what happens."""
