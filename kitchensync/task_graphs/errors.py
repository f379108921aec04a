"""Every error of task graphs, and the base of those of the recipe app; the text names the thing and what to do."""

from __future__ import annotations

from collections.abc import Mapping

Value = str | int | tuple[str, ...]


def filled(text: str, values: Mapping[str, Value]) -> str:
    """Put values into the `{names}` of a text; of a text without any, braces are what they are."""
    plain = {name: ", ".join(value) if isinstance(value, tuple) else value for name, value in values.items()}
    return text.format_map(plain) if values else text


class RecipeError(Exception):
    """Base of all recipe errors: one line that names the thing and what to do.

    `text` has `{names}` where the values stand; translations are found by it. A tuple among the values is words of
    ours, which are translated too; every other value stays as it was given.
    """

    exit_code = 1

    def __init__(self, text: str, /, **values: Value) -> None:
        super().__init__(filled(text, values))
        self.text, self.values = text, values


class BadGraph(RecipeError):
    """A task-graph file that is not what its format promises."""

    def __init__(self, name: str, place: str, why: str) -> None:
        super().__init__(f"{name}: {place}: {why}" if place else f"{name}: {why}")


class CyclicGraph(RecipeError):
    """Steps that wait for each other: no order exists."""

    def __init__(self, name: str, cycle: str) -> None:
        super().__init__(f"{name}: these steps wait for each other: {cycle}; remove one of these edges")


class TooManyStates(RecipeError):
    """The exact table would pass its budget."""

    def __init__(self, budget: int) -> None:
        super().__init__(f"more than {budget} sets of done steps: too many to count exactly")


class TooManyOrders(RecipeError):
    """Orders that can be neither counted nor drawn in reasonable time."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name}: {why}; add the edges that the recipe really needs, or split it into parts")


class NoSuchScript(RecipeError):
    """An error script that this graph cannot give."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name}: {why}")


class NotComparable(RecipeError):
    """Two graphs that are not about the same steps."""

    def __init__(self, first: str, second: str, where: str) -> None:
        super().__init__(f"{first} and {second} differ in {where}; annotators must start from the same steps")


class NotFound(RecipeError):
    """A recipe or recording that is not there."""
