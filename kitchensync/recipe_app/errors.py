"""Every error of the recipe app; the text of each names the thing and what to do."""

from __future__ import annotations

from kitchensync.task_graphs.errors import RecipeError


class BadSetup(RecipeError):
    """The app cannot start with these options."""


class NotAllowed(RecipeError):
    """Somebody who may not do this, or whose secret is wrong."""


class NameTaken(RecipeError):
    """A name that somebody or something has already."""


class TooOften(RecipeError):
    """Too many tries; `wait_s` says how long to wait."""

    def __init__(self, wait_s: int) -> None:
        super().__init__("too many tries; wait {wait_s} s and try again", wait_s=wait_s)
        self.wait_s = wait_s
