"""Types of a session: the operations of its log, and the reduced state."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from kitchensync.storage.recording_files.annotation_folder import MarkedVideo

PHASES = ("prepare", "checklist", "follow", "review", "done", "withdrawn")


class Op(TypedDict):
    """An operation; `body` has the fields of its kind. On a tablet `n` is None until the server has answered.

    The optional keys are only in the log of the app.
    """

    op_id: str
    kind: str
    body: dict[str, Any]
    host_ns: int
    device: str
    seen: int
    n: int
    seq: NotRequired[int]
    actor: NotRequired[str]
    subject: NotRequired[str]
    uncertainty_ns: NotRequired[int]
    basis: NotRequired[str]
    received_host_ns: NotRequired[int]
    received_utc_ns: NotRequired[int]
    clock: NotRequired[dict[str, Any]]
    hash: NotRequired[str]


class HostSpan(TypedDict):
    """A time span on the capture clock; the end is None while it lasts."""

    start: int
    end: int | None


class Run(TypedDict):
    """One execution of a step, in times of the capture clock; `shown` is its text on the screen."""

    start: int | None
    end: int | None
    holds: NotRequired[list[HostSpan]]
    stopped: NotRequired[int]
    shown: NotRequired[str]


class StepState(TypedDict):
    """State and executions of a step."""

    state: Literal["waiting", "open", "held", "stopped", "done", "skipped"]
    runs: list[Run]


class ErrorState(TypedDict):
    """An error; `operation_kinds.ErrorFields` describes its fields."""

    error_id: str
    planned: bool
    origin: str
    at: int | None
    node: int | None
    categories: list[int]
    subtype: str
    expected: str
    actual: str
    text: str
    language: str
    before: int | None
    description: str
    outcome: str
    outcome_note: str
    intent: str
    noticed: str
    corrected_by: int | str | None
    removed: bool
    conflicts: dict[str, list[dict[str, Any]]]
    recovery: NotRequired[str]
    judged: NotRequired[dict[str, str]]
    moments: NotRequired[dict[str, int | None]]
    ruled: NotRequired[list[str]]


class FrozenStep(TypedDict):
    """Label and text of a step in the recipe."""

    label: str
    text: str


class Frozen(TypedDict):
    """The recipe as frozen when a recording was chosen; `annotated` is the original of a published recording."""

    name: str
    title: str
    source: str
    graph_hash: str
    strategy: str
    display: str
    seed: int
    order: list[int]
    steps: dict[str, FrozenStep]
    edges: list[list[int]]
    planned: list[dict[str, Any]]
    script: dict[str, Any] | None
    folder: str | None
    kitchen: str
    language: NotRequired[str]
    session: NotRequired[str]
    category: NotRequired[str]
    begun: NotRequired[dict[str, Any]]
    began_utc_ns: NotRequired[int]
    collection: NotRequired[str]
    annotated: NotRequired[dict[str, Any]]


class WithdrawnState(TypedDict):
    """When a recording was withdrawn, in which phase, and by which operation."""

    at: int
    before: str
    n: int


class State(TypedDict):
    """The reduced state of a recording.

    `recording` is None before it was chosen, `marked_video` is None if no times of errors were marked.
    `review_closed` is absent until the review is closed, so that the state of older logs does not change.
    """

    recording: Frozen
    instructed: dict[str, Any] | None
    phase: str
    steps: dict[str, StepState]
    errors: dict[str, ErrorState]
    consent: dict[str, Any] | None
    checklist: dict[str, bool]
    checked: dict[str, Any] | None
    capture: dict[str, Any] | None
    marks: list[dict[str, Any]]
    notes: list[dict[str, Any]]
    voices: list[dict[str, Any]]
    timers: dict[str, dict[str, int | str]]
    hints: dict[str, int]
    awake: dict[str, Any] | None
    rest: str | None
    holder: str | None
    pauses: list[HostSpan]
    withdrawn: WithdrawnState | None
    last: list[str]
    redo: list[str]
    count: int
    review_closed: NotRequired[bool]
    marked_video: NotRequired[MarkedVideo]


def empty_state() -> State:
    """Return the state before the first operation."""
    return {
        "recording": None,  # type: ignore[typeddict-item]
        "instructed": None,
        "phase": PHASES[0],
        "steps": {},
        "errors": {},
        "consent": None,
        "checklist": {},
        "checked": None,
        "capture": None,
        "marks": [],
        "notes": [],
        "voices": [],
        "timers": {},
        "hints": {},
        "awake": None,
        "rest": None,
        "holder": None,
        "pauses": [],
        "withdrawn": None,
        "last": [],
        "redo": [],
        "count": 0,
    }


def new_error(error_id: str, *, planned: bool, origin: str, at: int | None = None) -> ErrorState:
    """Return an error without any fields set."""
    return {
        "error_id": error_id,
        "planned": planned,
        "origin": origin,
        "at": at,
        "node": None,
        "categories": [],
        "subtype": "",
        "expected": "",
        "actual": "",
        "text": "",
        "language": "",
        "before": None,
        "description": "",
        "outcome": "",
        "outcome_note": "",
        "intent": "",
        "noticed": "",
        "corrected_by": None,
        "removed": False,
        "conflicts": {},
    }
