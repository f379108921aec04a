"""Questions about objects over time, with the moments of the video that answer them."""
