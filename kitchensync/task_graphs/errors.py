"""Errors of task graphs, and the base class of the recipe app's errors; messages name the object and the remedy."""

from __future__ import annotations

from collections.abc import Mapping

Value = str | int | tuple[str, ...]


def filled(text: str, values: Mapping[str, Value]) -> str:
    """Return a text with its `{names}` replaced by values; without values the braces are kept."""
    strings = {
        name: ", ".join(value) if isinstance(value, tuple) else value for name, value in values.items()
    }
    return text.format_map(strings) if values else text


class RecipeError(Exception):
    """Base class of all recipe errors; the message is one line that names the object and the remedy.

    `text` has `{names}` for the values and is the key of its translations. A value that is a tuple holds words that
    are translated too; other values are not.
    """

    exit_code = 1

    def __init__(self, text: str, /, **values: Value) -> None:
        super().__init__(filled(text, values))
        self.text, self.values = text, values


class BadGraph(RecipeError):
    """A task-graph file does not follow its format."""

    def __init__(self, name: str, place: str, why: str) -> None:
        super().__init__(f"{name}: {place}: {why}" if place else f"{name}: {why}")


class CyclicGraph(RecipeError):
    """Steps wait for each other, so no order exists."""

    def __init__(self, name: str, cycle: str) -> None:
        super().__init__(f"{name}: these steps wait for each other: {cycle}; remove one of these edges")


class TooManyStates(RecipeError):
    """The table for exact counting would exceed its budget."""

    def __init__(self, budget: int) -> None:
        super().__init__(f"more than {budget} sets of done steps: too many to count exactly")


class TooManyOrders(RecipeError):
    """Orders can be neither counted nor drawn in reasonable time."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name}: {why}; add the edges that the recipe needs, or split it into parts")


class NoSuchScript(RecipeError):
    """The requested error script is impossible for this graph."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name}: {why}")


class NotComparable(RecipeError):
    """Two graphs do not have the same steps."""

    def __init__(self, first: str, second: str, where: str) -> None:
        super().__init__(f"{first} and {second} differ in {where}; annotators must start from the same steps")


class NotFound(RecipeError):
    """A recipe or recording does not exist."""
