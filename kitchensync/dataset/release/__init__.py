"""A data set written from recordings: films, synchronized data, texts, checksums."""
