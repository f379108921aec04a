"""Types of the tablet's events in a recording's folder, which may come from elsewhere and contain anything."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from kitchensync.operations.errors import BadOperation


class _Filed(BaseModel):
    """Checks the types of the keys that are read; other keys are ignored."""

    model_config = ConfigDict(extra="ignore", strict=True)


_Node = Annotated[int, Field(ge=0, le=999_999_999)]
_Nanoseconds = Annotated[int, Field(ge=0, lt=1 << 61)]


class _Fields(_Filed):
    """Fields replace values of the error, so only numbers that an error may lack can be null."""

    node: _Node | None = None
    categories: list[Annotated[int, Field(ge=0, le=7)]] = []
    subtype: str = ""
    expected: str = ""
    actual: str = ""
    text: str = ""
    language: str = ""
    before: _Node | None = None
    description: str = ""
    recovery: str = ""
    outcome: str = ""
    outcome_note: str = ""
    at: _Nanoseconds | None = None
    intent: str = ""
    noticed: str = ""
    corrected_by: (
        Annotated[int, Field(ge=-1, le=999_999_999)] | Annotated[str, Field(max_length=64)] | None
    ) = None
    end: _Nanoseconds | None = None
    point_of_no_return: _Nanoseconds | None = None
    noticed_at: _Nanoseconds | None = None
    corrected_at: _Nanoseconds | None = None
    removed: bool = False

    @model_validator(mode="before")
    @classmethod
    def _has_no_reduced_keys(cls, fields: Any) -> Any:
        if isinstance(fields, dict) and (reserved := sorted(fields.keys() & _REDUCED_KEYS)):
            raise ValueError(f"{reserved[0]} is no field of an error")
        return fields


_REDUCED_KEYS = {"error_id", "planned", "origin", "conflicts", "judged"}
"""Keys of an error in a reduced log that no operation sets."""


class _Planned(_Filed):
    error_id: str
    fields: _Fields = _Fields()


class _Step(_Filed):
    label: str
    text: str


class _Recipe(_Filed):
    order: list[_Node]
    planned: list[_Planned]
    steps: dict[Annotated[str, Field(pattern=r"^\d{1,9}$")], _Step]
    edges: list[Annotated[list[_Node], Field(min_length=2, max_length=2)]]
    name: str
    title: str
    strategy: str
    display: str
    seed: int
    language: str = ""


class _Body(_Filed):
    node: _Node | None = None
    error_id: str | None = None
    left_out: bool = False
    fields: _Fields = _Fields()
    with_op: str | None = None
    undoes: str | None = None
    device: str = ""
    seen: Annotated[int, Field(ge=0, le=2**53)] = 0
    shown: str | None = None
    text: str = ""
    use: str = ""
    item: str = ""
    sha256: str = ""
    rest: str | None = None
    closed: bool = False


class _Event(_Filed):
    op_id: str


_REQUIRED = {
    **dict.fromkeys(("start", "done", "reopen", "skip", "hold"), ("node",)),
    **dict.fromkeys(("plan_error", "edit_error", "error", "add_error", "recovered"), ("error_id",)),
    "undo": ("undoes",),
    "timer": ("node", "seconds", "action"),
    "hint": ("use",),
    "check": ("item", "checked"),
    "voice": ("sha256",),
    "capture": ("reasons",),
    "close_review": ("closed",),
}
"""Required keys by kind of operation."""


def check_filed(event: dict[str, Any]) -> None:
    """Check that the values of a tablet's event have the types that the app writes. Raises BadOperation."""
    kind, body = event["kind"], event["body"]
    try:
        _Event.model_validate(event)
        (_Recipe if kind == "recipe" else _Body).model_validate(body)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))[:80]
        raise BadOperation(f"{kind}: {place}: {first['msg']}") from error
    if missing := [name for name in _REQUIRED.get(kind, ()) if body.get(name) is None]:
        raise BadOperation(f"{kind}: {missing[0]} is missing")
    if kind == "recipe" and (unknown := [node for node in body["order"] if str(node) not in body["steps"]]):
        raise BadOperation(f"recipe: order: {unknown[0]} is none of its steps")
