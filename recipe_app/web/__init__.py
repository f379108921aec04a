"""The app over HTTP: the table of routes, the guard at the door, pages and JSON."""
