"""Data sets in the published form of CaptainCook4D, made of a lab's own recordings."""
