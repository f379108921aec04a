"""The types of what a tablet filed into a recording's folder, which may come from elsewhere and hold anything."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kitchensync.dataset.errors import BadOperation


class _Filed(BaseModel):
    """The keys that are read have their types; others may be there."""

    model_config = ConfigDict(extra="ignore", strict=True)


class _Fields(_Filed):
    node: int | None = None
    categories: list[Annotated[int, Field(ge=0, le=7)]] | None = None
    subtype: str | None = None
    expected: str | None = None
    actual: str | None = None
    text: str | None = None
    language: str | None = None
    before: int | None = None
    description: str | None = None
    outcome: str | None = None
    outcome_note: str | None = None
    at: int | None = None
    intent: str | None = None
    noticed: str | None = None
    corrected_by: int | None = None
    removed: bool | None = None


class _Planned(_Filed):
    error_id: str
    fields: _Fields = _Fields()


class _Step(_Filed):
    label: str = ""
    text: str = ""


class _Recipe(_Filed):
    order: list[int]
    planned: list[_Planned]
    steps: dict[Annotated[str, Field(pattern=r"^\d{1,9}$")], _Step]
    edges: list[Annotated[list[int], Field(min_length=2, max_length=2)]] = []
    name: str = ""
    title: str = ""
    strategy: str = ""
    display: str = ""
    seed: int = 0


class _Body(_Filed):
    node: int | None = None
    error_id: str | None = None
    fields: _Fields | None = None
    with_op: str | None = None
    undoes: str | None = None
    device: str = ""
    seen: int = 0
    shown: str | None = None
    text: str = ""
    use: str = ""
    item: str = ""
    sha256: str = ""
    rest: str | None = None


class _Event(_Filed):
    op_id: str


_NEEDED = {
    **dict.fromkeys(("start", "done", "reopen", "skip", "hold"), ("node",)),
    **dict.fromkeys(("plan_error", "edit_error", "error", "add_error"), ("error_id",)),
    "undo": ("undoes",),
    "timer": ("node", "seconds", "action"),
    "hint": ("use",),
    "check": ("item", "checked"),
    "voice": ("sha256",),
    "capture": ("reasons",),
}
"""What an operation of a kind cannot be read without."""


def check_filed(event: dict[str, Any]) -> None:
    """Refuse an event of a tablet whose values have other types than the app files. Raises BadOperation."""
    kind, body = event["kind"], event["body"]
    try:
        _Event.model_validate(event)
        (_Recipe if kind == "recipe" else _Body).model_validate(body)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))[:80]
        raise BadOperation(f"{kind}: {place}: {first['msg']}") from error
    if lacking := [name for name in _NEEDED.get(kind, ()) if body.get(name) is None]:
        raise BadOperation(f"{kind}: {lacking[0]} is not there")
    if kind == "recipe" and (strange := [node for node in body["order"] if str(node) not in body["steps"]]):
        raise BadOperation(f"recipe: order: {strange[0]} is none of its steps")
