"""The commands of the recipe app, and those that read its database: `release captaincook4d`, `withdraw`, `study`."""
