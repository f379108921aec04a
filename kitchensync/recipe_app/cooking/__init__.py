"""A cooking session: choice of the recipe, checklist, control of the devices, outcome."""
