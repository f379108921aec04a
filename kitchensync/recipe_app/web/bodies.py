"""Request bodies besides operations, with their bounds."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from kitchensync.operations.operation_kinds import Line, Misfit, Operation, OpId, Strict
from kitchensync.recipe_app.cooking.steering import Action
from kitchensync.recipe_app.study.wanted import Display, Strategy
from kitchensync.task_graphs.text.plain_lines import LineKind

Name = Annotated[str, Field(min_length=1, max_length=40)]
Id = Annotated[str, Field(max_length=64)]
Secret = Annotated[str, Field(max_length=200)]
Roles = Annotated[
    list[Literal["participant", "operator", "annotator", "researcher", "admin"]], Field(max_length=5)
]


class EmptyBody(Strict):
    """A request body without fields."""


class PairRequest(Strict):
    """A pairing code and the tablet's name; a `program` gets the token in the answer, a browser in a cookie."""

    code: Secret
    name: Name
    secure: bool | None = None
    program: bool = False


class SignIn(Strict):
    """A person's tile and PIN."""

    person: Id
    pin: Secret
    program: bool = False


class RecordingsOfTablet(Strict):
    """Recordings that a tablet deleted from its storage, or saved as a dump."""

    recordings: Annotated[list[Id], Field(max_length=200)]


class CardSignIn(Strict):
    """The token of a QR card."""

    card: Secret
    program: bool = False


class DeskSignIn(Strict):
    """Name and password."""

    pseudonym: Name
    password: Secret
    program: bool = False


class AcceptInvite(Strict):
    """The token of an invite and the password to set."""

    code: Secret
    password: Secret


class Choose(Strict):
    """Begin a recording: the recipe, the strategy, the display and the seed."""

    op_id: OpId
    recipe: Id
    strategy: Strategy = "normal"
    display: Display = "steps"
    seed: Annotated[int, Field(ge=0, le=2**53)] | None = None
    """Seed of the drawn order; chosen by the server if None."""
    missing: Annotated[int, Field(ge=0, le=6)] = 1
    flips: Annotated[int, Field(ge=0, le=6)] = 2
    folder: Id | None = None
    language: Annotated[str, Field(max_length=3)] = ""
    session: Annotated[str, Field(max_length=24)] = ""
    """A planned session; its recipe, strategy, display, seed, order and category take precedence."""


class StudyPlanFile(Strict):
    """A plan written by `kitchensync study plan`, and the number of the plan to replace."""

    schema_: Annotated[Literal["study-plan/1"], Field(alias="schema")]
    sessions: Annotated[list[dict[str, Any]], Field(max_length=20_000)]
    goals: Annotated[list[dict[str, Any]], Field(max_length=20_000)] = []  # noqa: RUF012
    unmet: list[dict[str, Any]] = []  # noqa: RUF012
    notes: list[str] = []  # noqa: RUF012
    study: Annotated[str, Field(max_length=400_000)] = ""
    proven: bool = False
    recorded: int = 0
    left_out: dict[str, str] = {}  # noqa: RUF012
    seen: Annotated[int, Field(ge=0, le=2**53)] | None = None


class EditedStudy(Strict):
    """The text of a study file, the sessions to keep, and the number of the plan the page showed."""

    study: Annotated[str, Field(max_length=400_000)]
    seen: Annotated[int, Field(ge=0, le=2**53)]
    locked: Annotated[list[Annotated[str, Field(max_length=24)]], Field(max_length=20_000)] = []  # noqa: RUF012


class OperationBatch(Strict):
    """Operations of one device, ordered by sequence number."""

    operations: Annotated[
        list[Annotated[Operation | Misfit, Field(union_mode="left_to_right")]],
        Field(min_length=1, max_length=200),
    ]


class DeskControl(Strict):
    """An action on the devices of a recording; the desk may let a session continue `without` them."""

    action: Action
    reason: Annotated[str, Field(max_length=200)] = ""


class Control(DeskControl):
    """An action of a tablet on the devices."""

    action: Literal["start", "stop", "abort"]


class RoomControl(Strict):
    """An action on any running recording; repeating an `op_id` does not repeat the action."""

    op_id: OpId
    action: Literal["stop", "abort", "mark", "pause", "resume", "swap", "swapped", "leave_films"]
    text: Annotated[str, Field(max_length=300)] = ""


class Preflight(Strict):
    """The kitchen to check."""

    kitchen: Id


class NewPerson(Strict):
    """A new person, with a PIN for the tablet and roles for the desk."""

    pseudonym: Name
    roles: Roles = ["participant"]  # noqa: RUF012
    pin: Secret = ""


class ChangePerson(Strict):
    """Changes of a person."""

    roles: Roles | None = None
    active: bool | None = None
    pin: Secret | None = None


class NewKitchen(Strict):
    """A kitchen."""

    name: Name


class PairingCode(Strict):
    """The kitchen to pair a tablet with."""

    kitchen: Id


class DeskOperation(Strict):
    """A correction after the fact; `seen` is the last operation that the page showed."""

    op_id: OpId
    kind: Literal["edit_error", "add_error", "note", "undo", "withdraw", "close_review"]
    body: dict[str, Any]
    seen: Annotated[int, Field(ge=0, le=2**53)] = 0


class LiveMark(Strict):
    """A remark of an operator during a recording; repeating an `op_id` does not repeat the remark."""

    op_id: OpId
    text: Line


class TabletDump(Strict):
    """The text of a dump that a tablet saved."""

    text: Annotated[str, Field(max_length=64 << 20)]


class NewCollection(Strict):
    """A folder of published annotations: relative path -> text."""

    name: Name
    files: Annotated[dict[Annotated[str, Field(max_length=120)], str], Field(max_length=400)]


class NewRecipe(Strict):
    """A recipe file as text: a task graph, or plain text, Cooklang or JSON-LD as the start of one."""

    file_name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,80}$")]
    text: Annotated[str, Field(max_length=200_000)]


class WrittenRecipe(Strict):
    """A recipe as plain text; `kinds` overrides the detected kind of each non-empty line."""

    file_name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,80}$")]
    text: Annotated[str, Field(max_length=200_000)]
    kinds: Annotated[tuple[LineKind, ...], Field(max_length=5000)] = ()


class OrderEdges(Strict):
    """All edges between the steps of a recipe, [before, after] each; `seen` is the hash of the edited recipe."""

    edges: Annotated[list[tuple[int, int]], Field(max_length=20_000)]
    seen: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class NewWording(Strict):
    """A recipe in another language, one line per step; `own` is the recipe's own language if it states none."""

    language: Annotated[str, Field(pattern=r"^[a-z]{2,3}$")]
    title: Annotated[str, Field(min_length=1, max_length=60)]
    lines: Annotated[str, Field(max_length=200_000)]
    own: Annotated[str, Field(pattern=r"^([a-z]{2,3})?$")] = ""


class Override(Strict):
    """The reason why a recording may begin with open points of its checklist."""

    op_id: OpId
    reason: Annotated[str, Field(min_length=3, max_length=300)]
