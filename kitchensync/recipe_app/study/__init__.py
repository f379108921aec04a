"""Study planning: who cooks what, where and when, for as many goals of a study as possible."""
