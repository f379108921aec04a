"""Numbers of a data set, as the supplement of the CaptainCook4D paper prints them, and as a page and tables. Pure."""
