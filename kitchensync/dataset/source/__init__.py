"""What a data set is made of: a lab's own recordings, or a folder in the published form."""
