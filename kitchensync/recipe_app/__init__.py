"""The tablet and the desk: recipes, cooking step by step, review, annotation, studies."""
