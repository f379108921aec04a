"""The forms of `recording.json` and `media.json`: each value that this software reads, with its type and bounds.

Unknown keys are kept, and most keys may be missing: older and newer versions write other ones.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from kitchensync.storage.names import is_path_inside


def _inside(name: str) -> str:
    if not is_path_inside(name):
        raise ValueError("no path inside of the recording")
    return name


def _part(name: str) -> str:
    if "/" in name:
        raise ValueError("no name of a file or folder")
    return _inside(name)


Inside = Annotated[str, AfterValidator(_inside)]
"""A path below the folder of the recording."""
Part = Annotated[str, AfterValidator(_part)]
"""One part of such a path."""
Label = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
"""A word that commands compare or file by. Texts of people may hold anything, and are escaped where shown."""
Whole = Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)]
Count = Annotated[int, Field(ge=0, lt=1 << 63)]
Rate = Annotated[float, Field(ge=0, le=1e9)]
Size = Annotated[int, Field(ge=0, le=1 << 16)]
"""Of a picture, in pixels."""
Sample = Annotated[int, Field(ge=0, lt=10_000_000)]
"""Number of a sample of a film: a set of them is made."""
Span = Annotated[list[Whole], Field(min_length=2, max_length=2)]
Run = Annotated[list[Sample], Field(min_length=2, max_length=2)]


class Form(BaseModel):
    """Values are of the very type that is written; keys that are not named here may be anything."""

    model_config = ConfigDict(extra="ignore", strict=True)


class MomentForm(Form):
    """A moment on both clocks, ns; `reason` where it is an end."""

    host_ns: Whole = 0
    utc_ns: Whole = 0
    reason: str = ""


class AnchorForm(Form):
    """One moment on both clocks, ns."""

    host_ns: Whole
    utc_ns: Whole
    bound_ns: Count = 0
    slept_ns: Whole = 0
    synchronized: bool = False


class ZoneForm(Form):
    """The time zone of the place."""

    iana: str | None = None
    utc_offset_s: Annotated[float, Field(ge=-90_000, le=90_000)] | None = None
    changes: list[Any] = []


class DeviceForm(Form):
    """A headset, camera or plug-in."""

    kind: Label
    address: str | None = None
    model: str | None = None
    gyroscope_unit: str | None = None
    utc_offset_ticks: Whole | None = None
    replays: str = ""
    sensor: str = ""
    settings: dict[str, Any] | None = None


class FormatForm(Form):
    """How a device was asked to send."""

    module: str = ""
    codec: str = ""
    configuration: str = ""
    width: Size = 0
    height: Size = 0
    hz: Rate | None = None
    unit: str | None = None
    packing: str = ""
    channels: Annotated[int, Field(ge=1, le=1024)] = 1
    rate_hz: Rate = 0
    settings: dict[str, Any] = {}
    loses: list[str] = []


class StreamForm(Form):
    """A stream of a device."""

    device: str = ""
    nominal_hz: Rate | None = None
    adaptive: bool = False
    format: FormatForm | None = None


class FileFactsForm(Form):
    """What a file was sealed with."""

    bytes: Count = 0
    sha256: str


class ChoiceForm(Form):
    """Which recipe was cooked."""

    name: str | None = None
    graph_hash: str | None = None
    order: list[Any] | None = None


class ScriptForm(Form):
    """How it was to be cooked."""

    strategy: str | None = None
    display: str | None = None


class RedactedChunkForm(Form):
    """A chunk that was destroyed, or packets that were never stored."""

    chunk: Count = 0
    packets: Count = 0
    bytes: Count = 0
    seq: Span
    ticks: Span = []
    sha256: str = ""
    cause: str = ""


class RedactedFilmForm(Form):
    """What was destroyed of a film: runs of samples by track, [first, last] each."""

    sha256: str = ""
    samples: dict[str, list[Run]] = {}


class RedactionForm(Form):
    """What was destroyed at once."""

    id: str
    state: str
    reason: str = ""
    by: str = ""
    utc_ns: Whole = 0
    open: list[str]
    streams: dict[Inside, list[RedactedChunkForm]]
    films: dict[Inside, RedactedFilmForm]


class PartOfForm(Form):
    """What a part was cut from."""

    recording: str = ""
    host_ns: Span
    first_ticks: Whole | None = None
    first_host_ns: Whole | None = None


class WaitingForm(Form):
    """Packets that are still in the queue."""

    packets: Count
    why: str


class OverrideForm(Form):
    """For what a recording was used although nobody agreed."""

    purpose: str
    reason: str


class RebuiltForm(Form):
    """How a lost manifest was put together again."""

    unknown: list[str]


class GoneFileForm(Form):
    """A file that a withdrawal destroyed."""

    file: Inside
    bytes: Count = 0
    sha256: str = ""


class WithdrawalForm(Form):
    """That the consent was taken back, and what was done."""

    host_ns: Whole | None = None
    utc_ns: Whole = 0
    policy: str = ""
    files: list[GoneFileForm] = []
    open: list[dict[str, Any]] = []
    derived: list[dict[str, Any]] = []
    cards: list[dict[str, Any]] = []


class AbandonedForm(Form):
    """Why somebody aborted it."""

    reason: str | None = None


class ManifestForm(Form):
    """A manifest."""

    recording: Part = ""
    uuid: Part | None = None
    state: Label = ""
    retake_of: Part | None = None
    started: MomentForm | None = None
    stopped: MomentForm | None = None
    adopted: MomentForm | None = None
    utc_anchors: list[AnchorForm] = []
    zone: ZoneForm | None = None
    consent: Label | None = None
    consent_scopes: list[str] = []
    consent_history: list[dict[str, Any]] = []
    consent_overrides: list[OverrideForm] = []
    pseudonym: str | None = None
    place: str | None = None
    recipe: ChoiceForm | str | None = None
    script: ScriptForm | None = None
    devices: dict[Part, DeviceForm] = {}
    profile: dict[str, Any] | None = None
    streams: dict[Inside, StreamForm] = {}
    software: dict[str, Any] | None = None
    files: dict[Inside, FileFactsForm] = {}
    restarts: list[Any] = []
    problems: list[str] = []
    notes: list[str] = []
    declared_losses: list[dict[str, Any]] = []
    waiting: dict[Inside, WaitingForm] = {}
    redactions: list[RedactionForm] = []
    made_from: list[str] = []
    part_of: Annotated[PartOfForm, Field(default=None)]
    abandoned: AbandonedForm | None = None
    rebuilt: RebuiltForm | None = None
    withdrawn: WithdrawalForm | None = None


class BlocksForm(Form):
    """CRC-32 of every block of a film."""

    block_bytes: Annotated[int, Field(gt=0)]
    crc32: list[int]


class FilmForm(Form):
    """A camera's file."""

    file: Part
    folder: str | None = None
    bytes: Count
    sha256: str | None = None
    blocks: BlocksForm | None = None
    created_s: Annotated[float, Field(ge=-1e12, le=1e12)] | None = None


class ShutterForm(Form):
    """When a shutter was pressed: the truth lies between before and observed."""

    before_host_ns: Whole
    after_host_ns: Whole
    observed_host_ns: Whole | None = None


class ClockOffsetForm(Form):
    """How far the camera's local clock is from UTC."""

    offset_ns: Whole = 0
    zone_minutes: Annotated[int, Field(ge=-1500, le=1500)] | None = None


class CameraClockForm(Form):
    """The camera's clock at the start."""

    start: ClockOffsetForm | None = None


class CameraGapForm(Form):
    """A time in which the camera filmed nothing."""

    cause: str
    start_host_ns: Whole
    end_host_ns: Whole


class MediaForm(Form):
    """What a camera's `media.json` holds."""

    state: str = ""
    serial: str | None = None
    address: str | None = None
    files: list[FilmForm] = []
    small: list[Part] = []
    before: list[Annotated[list[str], Field(min_length=2, max_length=2)]] = []
    gaps: list[CameraGapForm] = []
    shutter_on: ShutterForm | None = None
    shutters_on_again: list[ShutterForm] = []
    shutter_off: ShutterForm | None = None
    ended_host_ns: Whole | None = None
    anchor: Annotated[AnchorForm, Field(default=None)]
    clock: CameraClockForm | None = None


class VerdictForm(Form):
    """An answer of `verify` that was kept."""

    status: Literal["PASS", "WARN", "FAIL"]
    reasons: list[str] = []
    notes: list[str] = []
    streams: dict[str, dict[str, Any]] = {}
    corrupt: list[dict[str, Any]] = []
    trouble: dict[str, str] = {}
    session_s: Annotated[float, Field(ge=0, lt=1e9)] | None = None
    cameras: dict[str, dict[str, Any]] = {}
    good_for: list[Any] = []
    lost: dict[str, list[Any]] = {}


def wrong_in(form: type[Form], content: dict[str, Any]) -> str:
    """Return what is wrong in a document of a form, with its place; nothing where it fits."""
    try:
        form.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"] if part != "[key]")
        return f"{where[:200]!r}: {first['msg'].removeprefix('Value error, ').lower()}"
    return ""
