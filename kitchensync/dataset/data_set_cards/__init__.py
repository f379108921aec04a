"""What a stranger reads first of a data set: README, Croissant, a page with previews, a downloader, checksums."""
