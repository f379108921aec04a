"""The commands of the recipe app, and those that ask its memory: `release captaincook4d`, `withdraw`, `study`."""
