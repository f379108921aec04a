"""Errors of operations; each message says what is wrong and what to do."""

from __future__ import annotations

from kitchensync.task_graphs.errors import RecipeError


class BadOperation(RecipeError):
    """An operation with invalid content."""


class NotNow(RecipeError):
    """A valid request that is not possible in the present state of the recording."""
