"""The desk's pages and their data: people, kitchens, recipes, recordings, running recordings.

A page is a function that returns `render(request, "desk/NAME.html", visitor=visitor, ...)`, a `Route` with its access
in the `ROUTES` of its file, a template that extends `desk/base.html`, and keys in every file of `locales`.
"""
