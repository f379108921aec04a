"""Feature vectors for each second or two of a video, by any extractor."""
