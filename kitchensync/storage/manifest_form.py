"""`recording.json` and `media.json`: each value that this software reads, with its type and bounds.

Unknown keys are kept, and most keys may be missing: older and newer versions write other ones.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal, NotRequired

from pydantic import AfterValidator, Field, GetPydanticSchema, TypeAdapter, ValidationError
from typing_extensions import TypedDict

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


class MomentForm(TypedDict):
    """A moment on both clocks, ns; `reason` where it is an end."""

    host_ns: NotRequired[Whole]
    utc_ns: NotRequired[Whole]
    reason: NotRequired[str]


class AnchorForm(TypedDict):
    """One moment on both clocks, ns."""

    host_ns: Whole
    utc_ns: Whole
    bound_ns: NotRequired[Count]
    slept_ns: NotRequired[Whole]
    synchronized: NotRequired[bool]


class ZoneForm(TypedDict):
    """The time zone of the place."""

    iana: NotRequired[str | None]
    utc_offset_s: NotRequired[Annotated[float, Field(ge=-90_000, le=90_000)] | None]
    changes: NotRequired[list[Any]]


class DeviceForm(TypedDict):
    """A headset, camera or plug-in."""

    kind: Label
    address: NotRequired[str | None]
    model: NotRequired[str | None]
    serial: NotRequired[Any]
    firmware: NotRequired[Any]
    version: NotRequired[Any]
    virtual: NotRequired[Any]
    gyroscope_unit: NotRequired[str | None]
    utc_offset_ticks: NotRequired[Whole | None]
    replays: NotRequired[str]
    sensor: NotRequired[str]
    settings: NotRequired[dict[str, Any] | None]


class FormatForm(TypedDict):
    """How a device was asked to send."""

    module: NotRequired[str]
    codec: NotRequired[str]
    configuration: NotRequired[str]
    width: NotRequired[Size]
    height: NotRequired[Size]
    hz: NotRequired[Rate | None]
    unit: NotRequired[str | None]
    packing: NotRequired[str]
    channels: NotRequired[Annotated[int, Field(ge=1, le=1024)]]
    rate_hz: NotRequired[Rate]
    settings: NotRequired[dict[str, Any]]
    loses: NotRequired[list[str]]


Format = Annotated[dict[str, Any], GetPydanticSchema(lambda _, schema_of: schema_of(FormatForm))]
"""A `FormatForm` with whatever else the sensor writes there."""


class StreamForm(TypedDict):
    """A stream of a device."""

    device: NotRequired[str]
    port: NotRequired[Any]
    nominal_hz: NotRequired[Rate | None]
    adaptive: NotRequired[bool]
    format: NotRequired[Format | None]


class FileFactsForm(TypedDict):
    """What a file was sealed with."""

    bytes: NotRequired[Count]
    sha256: str


class ChoiceForm(TypedDict):
    """Which recipe was cooked."""

    name: NotRequired[str | None]
    graph_hash: NotRequired[str | None]
    order: NotRequired[list[Any] | None]


class ScriptForm(TypedDict):
    """How it was to be cooked."""

    strategy: NotRequired[str | None]
    display: NotRequired[str | None]


class RedactedChunkForm(TypedDict):
    """A chunk that was destroyed, or packets that were never stored."""

    chunk: NotRequired[Count]
    packets: NotRequired[Count]
    bytes: NotRequired[Count]
    seq: Span
    ticks: NotRequired[Span]
    sha256: NotRequired[str]
    cause: NotRequired[str]


class RedactedFilmForm(TypedDict):
    """What was destroyed of a film: runs of samples by track, [first, last] each."""

    sha256: NotRequired[str]
    samples: NotRequired[dict[str, list[Run]]]


class RedactionForm(TypedDict):
    """What was destroyed at once."""

    id: str
    state: str
    reason: NotRequired[str]
    by: NotRequired[str]
    utc_ns: NotRequired[Whole]
    open: list[str]
    places: NotRequired[Any]
    host_ns: NotRequired[Any]
    streams: dict[Inside, list[RedactedChunkForm]]
    films: dict[Inside, RedactedFilmForm]


class PartOfForm(TypedDict):
    """What a part was cut from."""

    recording: NotRequired[str]
    session_s: NotRequired[Any]
    host_ns: Span
    first_ticks: NotRequired[Whole | None]
    first_host_ns: NotRequired[Whole | None]


class WaitingForm(TypedDict):
    """Packets that are still in the queue."""

    packets: Count
    why: str
    first_seq: NotRequired[Any]
    last_seq: NotRequired[Any]


class OverrideForm(TypedDict):
    """A use of a recording without consent, with its reason."""

    purpose: str
    reason: str
    utc_ns: NotRequired[Any]


class RebuiltForm(TypedDict):
    """How a lost manifest was put together again."""

    utc_ns: NotRequired[Any]
    software: NotRequired[Any]
    damaged: NotRequired[Any]
    unknown: list[str]


class GoneFileForm(TypedDict):
    """A file that a withdrawal destroyed."""

    file: Inside
    bytes: NotRequired[Count]
    sha256: NotRequired[str]


class WithdrawalForm(TypedDict):
    """That the consent was taken back, and what was done."""

    host_ns: NotRequired[Whole | None]
    utc_ns: NotRequired[Whole]
    policy: NotRequired[str]
    files: NotRequired[list[GoneFileForm]]
    open: NotRequired[list[dict[str, Any]]]
    derived: NotRequired[list[dict[str, Any]]]
    cards: NotRequired[list[dict[str, Any]]]


class AbandonedForm(TypedDict):
    """Why somebody aborted it."""

    host_ns: NotRequired[Any]
    reason: NotRequired[str | None]


class Manifest(TypedDict, total=False):
    """A manifest."""

    schema: Any
    virtual: Any
    warnings: Any
    ended_by: Any
    override: Any
    card: Any
    log_anchors: Any
    consent_version: Any
    copying: Any

    recording: Part
    uuid: Part | None
    state: Label
    retake_of: Part | None
    started: MomentForm | None
    stopped: MomentForm | None
    adopted: MomentForm | None
    utc_anchors: list[AnchorForm]
    zone: ZoneForm | None
    consent: Label | None
    consent_scopes: list[str]
    consent_history: list[dict[str, Any]]
    consent_overrides: list[OverrideForm]
    pseudonym: str | None
    place: str | None
    recipe: ChoiceForm | str | None
    script: ScriptForm | None
    devices: dict[Part, DeviceForm]
    profile: dict[str, Any] | None
    streams: dict[Inside, StreamForm]
    software: dict[str, Any] | None
    files: dict[Inside, FileFactsForm]
    restarts: list[Any]
    problems: list[str]
    notes: list[str]
    declared_losses: list[dict[str, Any]]
    waiting: dict[Inside, WaitingForm]
    redactions: list[RedactionForm]
    made_from: list[str]
    part_of: PartOfForm
    abandoned: AbandonedForm | None
    rebuilt: RebuiltForm | None
    withdrawn: WithdrawalForm | None


class BlocksForm(TypedDict):
    """CRC-32 of every block of a film."""

    block_bytes: Annotated[int, Field(gt=0)]
    crc32: list[int]


class FilmForm(TypedDict):
    """A camera's file."""

    file: Part
    folder: NotRequired[str | None]
    bytes: Count
    sha256: NotRequired[str | None]
    blocks: NotRequired[BlocksForm | None]
    stored_bytes: NotRequired[Any]
    bytes_per_s: NotRequired[Any]
    created_s: NotRequired[Annotated[float, Field(ge=-1e12, le=1e12)] | None]


class ShutterForm(TypedDict):
    """When a shutter was pressed: the truth lies between before and observed."""

    before_host_ns: Whole
    after_host_ns: Whole
    observed_host_ns: NotRequired[Whole | None]


class ClockOffsetForm(TypedDict):
    """How far the camera's local clock is from UTC."""

    offset_ns: NotRequired[Whole]
    zone_minutes: NotRequired[Annotated[int, Field(ge=-1500, le=1500)] | None]


class CameraClockForm(TypedDict):
    """The camera's clock at the start."""

    start: NotRequired[ClockOffsetForm | None]


class CameraGapForm(TypedDict):
    """A time in which the camera filmed nothing."""

    cause: str
    start_host_ns: Whole
    end_host_ns: Whole


class MediaForm(TypedDict):
    """What a camera's `media.json` holds."""

    state: NotRequired[str]
    serial: NotRequired[str | None]
    address: NotRequired[str | None]
    files: NotRequired[list[FilmForm]]
    small: NotRequired[list[Part]]
    before: NotRequired[list[Annotated[list[str], Field(min_length=2, max_length=2)]]]
    gaps: NotRequired[list[CameraGapForm]]
    shutter_on: NotRequired[ShutterForm | None]
    shutters_on_again: NotRequired[list[ShutterForm]]
    shutter_off: NotRequired[ShutterForm | None]
    ended_host_ns: NotRequired[Whole | None]
    anchor: NotRequired[AnchorForm]
    clock: NotRequired[CameraClockForm | None]


class VerdictForm(TypedDict):
    """An answer of `verify` that was kept."""

    status: Literal["PASS", "WARN", "FAIL"]
    reasons: NotRequired[list[str]]
    notes: NotRequired[list[str]]
    streams: NotRequired[dict[str, dict[str, Any]]]
    corrupt: NotRequired[list[dict[str, Any]]]
    trouble: NotRequired[dict[str, str]]
    session_s: NotRequired[Annotated[float, Field(ge=0, lt=1e9)] | None]
    cameras: NotRequired[dict[str, dict[str, Any]]]
    good_for: NotRequired[list[Any]]
    lost: NotRequired[dict[str, list[Any]]]


_adapter_of = cache(TypeAdapter)


def wrong_in(form: Any, content: object) -> str:
    """Return what is wrong in a document of a form, with its place; nothing where it fits."""
    try:
        _adapter_of(form).validate_python(content, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"] if part != "[key]")
        return f"{where[:200]!r}: {first['msg'].removeprefix('Value error, ').lower()}"
    return ""
