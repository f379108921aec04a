"""What clients may send: shapes, bounds and nothing else."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

OpId = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9_-]{8,64}$", description="Made by the client, once per action.")
]
Milliseconds = Annotated[float, Field(ge=0, le=4e12, allow_inf_nan=False)]
NodeId = Annotated[int, Field(ge=0, le=999_999_999)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class StartStandalone(_Strict):
    """Begin a session without any capture device."""

    op_id: OpId


class ChooseRecipe(_Strict):
    """Show this recipe in the order that the seed draws."""

    op_id: OpId
    recipe: Annotated[str, Field(max_length=64)]
    seed: Annotated[int, Field(ge=0, le=2**53)] = 0


class ClientClock(_Strict):
    """The touch and one clock exchange, all on the client's clock; `host_ns` is what the exchange answered."""

    touch_ms: Milliseconds
    sent_ms: Milliseconds
    received_ms: Milliseconds
    host_ns: Annotated[int, Field(ge=0, le=2**63 - 1)]
    basis: Literal["page", "wall"] = "page"


class Operation(_Strict):
    """One action of the person at the tablet.

    The time of the touch is given by `clock`, or else by `tapped_ms_ago` with the last measured `round_trip_ms`.
    """

    op_id: OpId
    kind: Literal["done", "error", "undo"]
    step: NodeId | None = None
    category: Annotated[int, Field(ge=0, le=7)] | None = None
    note: Annotated[str, Field(max_length=500)] = ""
    undoes: OpId | None = None
    clock: ClientClock | None = None
    tapped_ms_ago: Annotated[float, Field(ge=0, le=8.64e7, allow_inf_nan=False)] | None = None
    round_trip_ms: Annotated[float, Field(ge=0, le=6e4, allow_inf_nan=False)] | None = None
