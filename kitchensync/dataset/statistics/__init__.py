"""Statistics of a data set, as in the supplement of the CaptainCook4D paper, and as a page and tables. Pure."""
