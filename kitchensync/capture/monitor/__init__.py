"""Watching a running recording from outside: what it tells, judged by rules, for people and for other tools."""
