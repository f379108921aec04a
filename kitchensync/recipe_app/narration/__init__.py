"""Spoken narrations of a paused video: saved, recognized offline, parsed and released; and voice notes."""
