"""The desk's pages, and what they ask for: people, kitchens, recipes, recordings, one that is made."""
