"""Errors of the recipe app; each text names the thing and what to do."""

from __future__ import annotations

from kitchensync.task_graphs.errors import RecipeError


class BadSetup(RecipeError):
    """The app cannot start with these options."""


class NotAllowed(RecipeError):
    """A visitor without the access, or with a wrong secret."""


class NameTaken(RecipeError):
    """A name that is already in use."""


class TooOften(RecipeError):
    """Too many attempts; wait `wait_s` seconds."""

    def __init__(self, wait_s: int) -> None:
        super().__init__("too many tries; wait {wait_s} s and try again", wait_s=wait_s)
        self.wait_s = wait_s
