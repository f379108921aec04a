"""What clients may send besides operations: shapes, bounds and nothing else."""

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
    """A tablet's code and its name; a `program` gets the token in the answer, a browser in a cookie."""

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
    """Recordings that a tablet took out of its own memory, or of which it kept a dump."""

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
    """Begin a recording: the recipe, what the session is for, how it is shown, which draw."""

    op_id: OpId
    recipe: Id
    strategy: Strategy = "normal"
    display: Display = "steps"
    seed: Annotated[int, Field(ge=0, le=2**53)] | None = None
    """Which draw; without one the server draws it."""
    missing: Annotated[int, Field(ge=0, le=6)] = 1
    flips: Annotated[int, Field(ge=0, le=6)] = 2
    folder: Id | None = None
    language: Annotated[str, Field(max_length=3)] = ""
    session: Annotated[str, Field(max_length=24)] = ""
    """Of the plan, whose recipe, strategy, display, seed, order and category count then."""


class StudyPlanFile(Strict):
    """A plan as `kitchensync study plan` wrote it, and the number of the one that it is to replace."""

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
    """The text of a study file to plan by, the sessions that stay, and the number of the plan that was seen."""

    study: Annotated[str, Field(max_length=400_000)]
    seen: Annotated[int, Field(ge=0, le=2**53)]
    locked: Annotated[list[Annotated[str, Field(max_length=24)]], Field(max_length=20_000)] = []  # noqa: RUF012


class OperationBatch(Strict):
    """Operations of one device in the order of their sequence numbers."""

    operations: Annotated[
        list[Annotated[Operation | Misfit, Field(union_mode="left_to_right")]],
        Field(min_length=1, max_length=200),
    ]


class DeskControl(Strict):
    """What shall happen to the devices of a recording; the desk may let a session go on `without` them."""

    action: Action
    reason: Annotated[str, Field(max_length=200)] = ""


class Control(DeskControl):
    """The same on a tablet."""

    action: Literal["start", "stop", "abort"]


class RoomControl(Strict):
    """What shall happen to a running recording, whoever began it; the same `op_id` twice is one pause."""

    op_id: OpId
    action: Literal["stop", "abort", "mark", "pause", "resume", "swap", "swapped", "leave_films"]
    text: Annotated[str, Field(max_length=300)] = ""


class Preflight(Strict):
    """Whose devices are to be looked over."""

    kitchen: Id


class NewPerson(Strict):
    """Somebody new; a PIN for the tablet, roles for the desk."""

    pseudonym: Name
    roles: Roles = ["participant"]  # noqa: RUF012
    pin: Secret = ""


class ChangePerson(Strict):
    """What shall be different of somebody."""

    roles: Roles | None = None
    active: bool | None = None
    pin: Secret | None = None


class NewKitchen(Strict):
    """A kitchen."""

    name: Name


class PairingCode(Strict):
    """The kitchen that a tablet shall belong to."""

    kitchen: Id


class DeskOperation(Strict):
    """A correction after the fact; `seen` is the last operation of the page that it was made on."""

    op_id: OpId
    kind: Literal["edit_error", "add_error", "note", "undo", "withdraw", "close_review"]
    body: dict[str, Any]
    seen: Annotated[int, Field(ge=0, le=2**53)] = 0


class LiveMark(Strict):
    """What an operator remarks while something is recorded; the same `op_id` twice is one remark."""

    op_id: OpId
    text: Line


class TabletDump(Strict):
    """The text of a file that a tablet saved."""

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
    """A recipe as plain text; `kinds` says of each filled line what it is, where a person knows better."""

    file_name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,80}$")]
    text: Annotated[str, Field(max_length=200_000)]
    kinds: Annotated[tuple[LineKind, ...], Field(max_length=5000)] = ()


class OrderEdges(Strict):
    """All edges between the steps of a recipe, [before, after] each; `seen` is the hash of what was edited."""

    edges: Annotated[list[tuple[int, int]], Field(max_length=20_000)]
    seen: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class NewWording(Strict):
    """A recipe in one more language: a line a step; `own` is the recipe's own language where it names none."""

    language: Annotated[str, Field(pattern=r"^[a-z]{2,3}$")]
    title: Annotated[str, Field(min_length=1, max_length=60)]
    lines: Annotated[str, Field(max_length=200_000)]
    own: Annotated[str, Field(pattern=r"^([a-z]{2,3})?$")] = ""


class Override(Strict):
    """Why a recording may begin though points of its checklist are open."""

    op_id: OpId
    reason: Annotated[str, Field(min_length=3, max_length=300)]
