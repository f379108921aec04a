"""The command `annotate`: steps on films, with and without a server."""
