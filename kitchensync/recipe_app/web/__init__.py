"""The app over HTTP: the table of routes, the guard, pages and JSON."""
