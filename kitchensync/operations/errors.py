"""Errors of what people enter; the text of each names the thing and what to do."""

from __future__ import annotations

from kitchensync.task_graphs.errors import RecipeError


class BadOperation(RecipeError):
    """An operation whose content cannot be right."""


class NotNow(RecipeError):
    """A well-formed request that does not fit the state of the recording."""
