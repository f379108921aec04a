"""Kinds of operations on a recording from a tablet, with the fields of each.

An operation is one action of one person on one device, and is kept forever. The server adds its own kinds:
`recording` (the choice, frozen with everything that is shown), `capture` (requests to the devices), `release` (the
desk took the recording from its tablet) and `close_review` (the desk closed or reopened its review).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kitchensync.operations.errors import BadOperation

OpId = Annotated[
    str,
    Field(
        pattern=r"^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$",
        description="UUID version 7, made by the client once per action",
    ),
]
Milliseconds = Annotated[float, Field(ge=0, le=4e12, allow_inf_nan=False)]
Nanoseconds = Annotated[int, Field(ge=0, le=2**63 - 1)]
Node = Annotated[int, Field(ge=0, le=999_999_999)]
Categories = Annotated[list[Annotated[int, Field(ge=0, le=7)]], Field(max_length=8)]
Short = Annotated[str, Field(max_length=80)]
MAX_LINE_LENGTH = 600
Line = Annotated[str, Field(max_length=MAX_LINE_LENGTH)]
OnScreen = Annotated[str, Field(max_length=4000)]


class Strict(BaseModel):
    """A model without additional fields."""

    model_config = ConfigDict(extra="forbid")


class ClientClock(Strict):
    """The touch and the best clock exchange for it, on the client's clock, with the server's answer.

    `basis` is the client's clock: `page` never steps; `wall` is used if the page was reloaded since. `clock_id`
    identifies the run of the capture computer that answered, `signature` authenticates its answer.
    """

    touch_ms: Milliseconds
    sent_ms: Milliseconds
    received_ms: Milliseconds
    host_ns: Nanoseconds
    basis: Literal["page", "wall"] = "page"
    clock_id: Short = ""
    signature: Short = ""
    wall_ms: Milliseconds | None = None


class _AtStep(Strict):
    """An action at a step; `shown` is its text on the screen when it was touched."""

    node: Node
    shown: OnScreen | None = None


class Start(_AtStep):
    """A step was started; `with_op` is another operation of the same touch."""

    with_op: OpId | None = None


class ErrorFields(Strict):
    """Fields of an error; only those present are changed.

    `before` is the step in front of which an error of order places its step (its own node: not specified), `language`
    is that of `text`. Times are on the capture clock: `at` when it happened, `end` when it was over,
    `point_of_no_return` when it could no longer be corrected, `noticed_at`, `corrected_at`. `corrected_by` is the
    step or error that corrected it (-1: none; the error's own id: its planned recovery). `recovery` is the planned
    text of the correction, which the tablet shows as a step after the step of the error.
    """

    node: Node | None = None
    categories: Categories | None = None
    subtype: Short | None = None
    expected: Line | None = None
    actual: Line | None = None
    text: Line | None = None
    language: Short | None = None
    before: Node | None = None
    description: Line | None = None
    recovery: Line | None = None
    outcome: Literal["", "as_planned", "differently", "not_done"] | None = None
    outcome_note: Line | None = None
    at: Nanoseconds | None = None
    intent: Literal["", "on_purpose", "by_accident"] | None = None
    noticed: Literal["", "at_once", "later", "somebody_else", "not"] | None = None
    corrected_by: Annotated[int, Field(ge=-1, le=999_999_999)] | OpId | None = None
    end: Nanoseconds | None = None
    point_of_no_return: Nanoseconds | None = None
    noticed_at: Nanoseconds | None = None
    corrected_at: Nanoseconds | None = None
    removed: bool | None = None


class NewError(Strict):
    """An error, planned (stage 2), logged (stage 3) or added (stage 4)."""

    error_id: OpId
    fields: ErrorFields


class MadeError(NewError):
    """An error while cooking; `shown` is the text of its step on the screen."""

    shown: OnScreen | None = None


class PlannedError(NewError):
    """An error that shall be made; `hint` is the category of the hint that it is based on."""

    hint: Short = ""


class EditError(NewError):
    """A change of an error; its fields are merged separately."""


class RecoveryStep(Strict):
    """The planned recovery of an error was done or left out; `shown` is its text on the screen."""

    error_id: OpId
    left_out: bool = False
    shown: OnScreen | None = None


class HintUse(_AtStep):
    """A hint was shown for the first time, applied or edited as an error, or suggested with the balanced set."""

    category: Short
    wording: Line
    use: Literal["shown", "applied", "edited", "suggested"]


Scope = Literal["annotate", "release_raw", "release_faces_hidden", "third_party_processing"]


class Consent(Strict):
    """The complete answer to one version of the consent form; the last answer counts."""

    version: Short
    accepted: bool
    scopes: Annotated[list[Scope], Field(max_length=4)] = []
    language: Annotated[str, Field(max_length=3)] = ""


class Check(Strict):
    """One item of the checklist."""

    item: Annotated[str, Field(pattern=r"^[a-z0-9_]{1,40}$")]
    checked: bool


class Checked(Strict):
    """The checklist is complete; `confirmed_by` is the second person, `override` the reason for an open item."""

    version: Short
    confirmed_by: Short = ""
    override: Line = ""


class Timer(_AtStep):
    """A kitchen timer of a step."""

    seconds: Annotated[int, Field(ge=1, le=86_400)]
    action: Literal["start", "stop", "rang", "lengthen", "pause", "resume"]


class Text(Strict):
    """A written remark."""

    text: Line


class Voice(Strict):
    """A voice note; its sound is sent separately under the hash of its bytes."""

    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    media_type: Annotated[str, Field(pattern=r"^audio/[a-z0-9.+-]{1,30}(;codecs=[a-z0-9.]{1,20})?$")]
    seconds: Annotated[float, Field(ge=0, le=600, allow_inf_nan=False)]
    error_id: OpId | None = None


class Instructed(Strict):
    """The instructions of a strategy were read: their version and their text on the screen.

    `training` are the versions of the training before the first session of a recipe or with a skill.
    """

    version: Short
    shown: OnScreen
    training: Annotated[list[Short], Field(max_length=40)] | None = None


class Awake(Strict):
    """Whether the screen is kept on."""

    held: bool


class End(Strict):
    """Cooking ended; `rest` is the reason why steps were not started, None if there were none."""

    rest: Literal["left_out", "stopped_early"] | None = None


class CloseReview(Strict):
    """The review of a recording was closed for the cook or reopened; only from the desk."""

    closed: bool


class Undo(Strict):
    """Takes back the operations of one touch; an undo can be undone too."""

    undoes: Annotated[list[OpId], Field(min_length=1, max_length=4)]


class Nothing(Strict):
    """An operation without fields."""


KINDS: dict[str, type[Strict]] = {
    "plan_error": PlannedError,
    "edit_error": EditError,
    "hint": HintUse,
    "instructed": Instructed,
    "prepared": Nothing,
    "consent": Consent,
    "check": Check,
    "checked": Checked,
    "start": Start,
    "done": _AtStep,
    "reopen": _AtStep,
    "skip": _AtStep,
    "hold": _AtStep,
    "error": MadeError,
    "recovered": RecoveryStep,
    "mark": Text,
    "timer": Timer,
    "awake": Awake,
    "end": End,
    "add_error": NewError,
    "note": Text,
    "voice": Voice,
    "finish": Nothing,
    "claim": Nothing,
    "pause": Nothing,
    "resume": Nothing,
    "withdraw": Nothing,
    "keep": Nothing,
    "undo": Undo,
}

DESK_KINDS: dict[str, type[Strict]] = {
    **{kind: KINDS[kind] for kind in ("edit_error", "add_error", "note", "undo", "withdraw")},
    "close_review": CloseReview,
}
"""Kinds of operations from the desk after cooking."""

if TYPE_CHECKING:
    Kind = str
else:
    Kind = Literal[tuple(KINDS)]


class Operation(Strict):
    """One action, as a device sends it."""

    op_id: OpId
    seq: Annotated[int, Field(ge=1, le=2**53, description="counted by the device, from 1")]
    recording: OpId
    actor: Annotated[
        str, Field(max_length=40, description="person according to the tablet; the signed-in person counts")
    ] = ""
    kind: Kind
    body: dict[str, Any] = Field(default_factory=dict, description="by kind")
    seen: Annotated[int, Field(ge=0, le=2**53, description="last n known of this recording")] = 0
    clock: ClientClock | None = None
    tapped_ms_ago: Annotated[float, Field(ge=0, le=8.64e9, allow_inf_nan=False)] | None = None
    round_trip_ms: Annotated[float, Field(ge=0, le=6e4, allow_inf_nan=False)] | None = None


class Misfit(BaseModel):
    """An object with the id of an operation but another form; it is refused without the others of its batch."""

    model_config = ConfigDict(extra="allow")
    op_id: OpId

    def refuse(self) -> NoReturn:
        """Raise BadOperation with the first problem, in one line."""
        checked(Operation, "operation", self.model_dump())
        raise AssertionError("a valid object would be an Operation")


def checked_body(operation: Operation) -> dict[str, Any]:
    """Return the body with only the fields of its kind. Raises BadOperation with a one-line message."""
    return checked(KINDS[operation.kind], operation.kind, operation.body)


def checked(model: type[Strict], kind: str, body: dict[str, Any]) -> dict[str, Any]:
    """Return a body with only the fields of its model. Raises BadOperation with a one-line message."""
    try:
        return model.model_validate(body).model_dump(exclude_none=True)
    except ValidationError as error:
        raise BadOperation(f"{kind}: {first_problem(error)}") from error


def first_problem(error: ValidationError) -> str:
    """Return the place of the first invalid value and the reason, in one line."""
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc'])) or 'body'}: {first['msg']}"
