"""Step times that people mark in videos with other tools: exported, imported, compared, accepted."""
