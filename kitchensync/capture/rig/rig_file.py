"""Read the devices and settings of a recording from the options of `record` or a rig file."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import parse_qs, urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from kitchensync.capture.errors import BadQueueAddress, BadRig
from kitchensync.capture.plan import LINGER_MS, HeadsetPlan, RecordingRequest, SensorPlan
from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.control.open_camera import SCHEMES
from kitchensync.sensors.gopro.control.settings import GoProSettings
from kitchensync.sensors.hololens.catalogue import DEFAULT_SET, STREAMS, forbidden_together, headset_stream
from kitchensync.sensors.hololens.profile import HeadsetSettings, Profile
from kitchensync.sensors.plugin import load_sensor
from kitchensync.shell.loopback import is_loopback_address
from kitchensync.storage.names import check_recording_id

TABLES = {
    "hololens": 'write [hololens] and below it lines such as hololens = "ADDRESS"',
    "gopro": 'write [gopro] and below it lines such as gopro = "ADDRESS"',
    "sensor": 'write [sensor.NAME] and below it kind = "..." and what the sensor wants',
}


class HeadsetTable(HeadsetSettings):
    """One headset: its address, and settings that differ from the common ones."""

    address: str


class SensorTable(BaseModel):
    """One plug-in sensor: the name under which its package registers it, and its own settings."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    kind: str


def _table(value: Any) -> Any:
    return {"address": value} if isinstance(value, str) else value


Headset = Annotated[HeadsetTable, BeforeValidator(_table, json_schema_input_type=str | HeadsetTable)]


class RigFile(HeadsetSettings):
    """The devices of a recording and their settings: kitchensync record ID --data DIR --rig rig.toml."""

    streams: list[str] | None = None
    "Recorded streams; without this line the default ones."
    gyroscope_unit: Literal["auto", "deg_per_s", "rad_per_s"] = "auto"
    "Unit of the headset's gyroscope; auto detects it at alignment."
    linger_ms: Annotated[int, Field(ge=0, le=LINGER_MS)] = LINGER_MS
    "Time for which packets are collected before they are sent to the queue together; 0: each by itself."
    hololens: dict[str, Headset] = Field(default_factory=dict)
    "Headsets: NAME = ADDRESS, or a table [hololens.NAME]; the name is the first part of the streams' names."
    gopro: dict[str, str] = Field(default_factory=dict)
    "Cameras: NAME = ADDRESS."
    camera: GoProSettings = GoProSettings()
    "Settings of every camera, applied before a recording."
    sensor: dict[str, SensorTable] = Field(default_factory=dict)
    "Plug-in sensors by name."


def first_problem(error: ValidationError) -> str:
    """Return a one-line message about the first wrong key; unknown keys come first, all of a table together."""
    problems = error.errors()
    unknown = [problem["loc"] for problem in problems if problem["type"] == "extra_forbidden"]
    if unknown:
        names = sorted(_key(loc) for loc in unknown if loc[:-1] == unknown[0][:-1])
        models: dict[Any, type[BaseModel]] = {"hololens": HeadsetTable, "camera": GoProSettings}
        model = models[unknown[0][0]] if len(unknown[0]) > 1 else RigFile
        return f"unknown setting {', '.join(names)}; known: {', '.join(sorted(model.model_fields))}"
    first = problems[0]
    key, kind, table = _key(first["loc"]), first["type"], str(first["loc"][0])
    if table in TABLES and kind in ("dict_type", "model_type", "string_type", "missing"):
        return f"{key} {'is missing' if kind == 'missing' else 'is of the wrong kind'}; {TABLES[table]}"
    should = first["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return f"{key} {should}, not {first['input']!r}"


def _key(loc: tuple[int | str, ...]) -> str:
    return ".".join(map(str, loc))


def order_from(recording: str, options: dict[str, Any]) -> RecordingRequest:
    """Build the request for a recording from the options of `record`. Raises BadRig, BadQueueAddress, SensorError."""
    rig = read_rig(options["rig"]) if options["rig"] else RigFile()
    if options["rig"] and (options["hololens"] or options["gopro"]):
        raise BadRig("give either --rig or the devices themselves (--hololens, --gopro), not both")
    hololens = _named(
        options["hololens"], "hololens", "--hololens hololens-a=HOST --hololens hololens-b=HOST"
    )
    gopro = _named(options["gopro"], "gopro", "--gopro gopro-left=URL --gopro gopro-right=URL")
    hololens |= {check_recording_id(name): table.address for name, table in rig.hololens.items()}
    gopro |= {check_recording_id(name): address for name, address in rig.gopro.items()}
    if not hololens and not gopro and not rig.sensor:
        raise BadRig("nothing to record: give --hololens HOST, --gopro URL, or --rig rig.toml")
    link = {"link": options["link"]} if options["link"] else {}
    profiles = {name: _settings(rig) | _settings(rig.hololens.get(name)) | link for name in hololens}
    streams = options["streams"].split(",") if options["streams"] else rig.streams
    sensors = sensors_from(rig.sensor, streams)
    sensor_streams = {f"{sensor.name}/{short}" for sensor in sensors for short in sensor.streams}
    headset_streams = None if streams is None else [name for name in streams if name not in sensor_streams]
    names = [*hololens, *gopro, *rig.sensor]
    if duplicates := {name for name in names if names.count(name) > 1}:
        raise BadRig(f"two devices are called {', '.join(sorted(duplicates))}; give each a name of its own")
    return RecordingRequest(
        recording=recording,
        data=options["data"],
        headsets=headsets_from(hololens, headset_streams, profiles),
        sensors=sensors,
        cameras=checked_cameras(gopro),
        camera_settings=rig.camera.model_dump(exclude_unset=True),
        seconds=options["seconds"],
        chunk_s=options["chunk_s"],
        start_timeout_s=options["start_timeout"],
        accept_version=options["accept_version"],
        redis_url=check_address(options["redis_url"]) if options["redis_url"] else None,
        retake_of=options["retake_of"],
        consent=options["consent"],
        participant=options["participant"],
        place=options["place"],
        stores=list(options["nas"]),
        gyroscope_unit=rig.gyroscope_unit,
        linger_ms=rig.linger_ms,
        override=" ".join((options["override"] or "").split()),
    )


def no_options() -> dict[str, Any]:
    """Return the default options of `record`."""
    return defaultdict(lambda: None, hololens=(), gopro=(), nas=())


def order_of(path: Path) -> RecordingRequest:
    """Return the request for a recording with a rig file and default options. Raises BadRig, SensorError."""
    return order_from("check", no_options() | {"rig": path, "data": path.parent, "start_timeout": 0.0})


def read_rig(path: Path) -> RigFile:
    """Read rig.toml. Raises BadRig with the name of the wrong key."""
    try:
        return RigFile(**tomllib.loads(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        raise BadRig(f"{path}: {first_problem(error)}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise BadRig(f"{path}: cannot be read ({error})") from error


def _settings(settings: HeadsetSettings | None) -> dict[str, Any]:
    """Return the headset settings that are set, without other keys of a table."""
    names = set(HeadsetSettings.model_fields)
    return settings.model_dump(include=names, exclude_unset=True) if settings else {}


def sensors_from(tables: dict[str, SensorTable], streams: list[str] | None) -> list[SensorPlan]:
    """Return the plug-in sensors of a rig; `streams` selects by full names. Raises SensorError."""
    plans = []
    for name, table in tables.items():
        settings = table.model_extra or {}
        offered = [stream.name for stream in load_sensor(table.kind, settings).streams()]
        chosen = [short for short in offered if streams is None or f"{name}/{short}" in streams]
        if chosen:
            plans.append(SensorPlan(check_recording_id(name), table.kind, chosen, settings))
    return plans


def headsets_from(
    named: dict[str, str], streams: list[str] | None, profiles: dict[str, dict[str, Any]]
) -> list[HeadsetPlan]:
    """Return the plans of the headsets with addresses `named` and settings `profiles`. Raises BadRig.

    `streams` are full names; short ones are accepted if there is only one headset.
    """
    plans = []
    for name, host in named.items():
        profile = {"link": "wifi"} | profiles[name]
        try:
            Profile(**profile)
        except SensorError as error:
            raise BadRig(f"{name}: {error}" if len(named) > 1 else str(error)) from error
        plans.append(HeadsetPlan(name, host, _chosen(name, streams, len(named)), profile))
    for plan in plans:
        if pair := forbidden_together(plan.streams):
            raise BadRig(
                f"{plan.name}: {pair[0]} and {pair[1]} are one physical sensor; leave one of them out"
            )
    chosen = {f"{plan.name}/{short}" for plan in plans for short in plan.streams}
    for stream in streams or []:
        if not any(name in (stream, f"{plan.name}/{stream}") for plan in plans for name in chosen):
            raise BadRig(f"stream {stream!r} belongs to no device of this recording")
    return plans


def checked_cameras(named: dict[str, str]) -> dict[str, str]:
    """Return the addresses of cameras by name if all are valid. Raises BadRig."""
    for name, url in named.items():
        if not url.startswith(SCHEMES):
            forms = "http://HOST:PORT, usb:SERIAL, cohn:NAME or ble:ID"
            raise BadRig(f"camera {name}: {url!r} is no address; write --gopro {forms}")
    return named


def _named(options: Sequence[str], default: str, example: str) -> dict[str, str]:
    pairs = []
    for option in options:
        name, sign, value = option.partition("=")
        pairs.append((check_recording_id(name), value) if sign else (default, option))
    if len(dict(pairs)) != len(pairs):
        raise BadRig(f"two devices are called {pairs[0][0]!r}; write {example}")
    return dict(pairs)


def _chosen(device: str, streams: list[str] | None, devices: int) -> list[str]:
    if streams is None:
        return list(DEFAULT_SET)
    chosen = []
    for stream in streams:
        prefix, sign, short = stream.strip().rpartition("/")
        if not sign and devices > 1:
            raise BadRig(f"stream {stream!r}: several devices have it; write {device}/{stream}")
        if not sign or prefix == device:
            try:
                headset_stream(short)
            except SensorError as error:
                raise BadRig(str(error)) from error
            chosen.append(short)
    return chosen


def template(hololens: str, gopro: str) -> str:
    """Return a commented rig file for one headset and one camera."""
    text = resources.files("kitchensync.capture.rig").joinpath("rig.toml.in").read_text(encoding="utf-8")
    return text.format(
        default=", ".join(DEFAULT_SET),
        all=", ".join(STREAMS),
        streams="[" + ", ".join(f'"{name}"' for name in DEFAULT_SET) + "]",
        hololens=hololens,
        gopro=gopro,
    )


def check_address(url: str) -> str:
    """Return the address. Raises BadQueueAddress if packets would travel without encryption or authentication."""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("redis", "rediss") and parts.hostname and parts.port != 0
    except ValueError as error:
        raise BadQueueAddress(url, f"is no address ({error})") from error
    if parts.scheme == "unix" and parts.path:
        return url
    if not is_address:
        raise BadQueueAddress(
            url, "is no address; write redis://HOST:PORT, rediss://HOST:PORT or unix:///PATH"
        )
    options = parse_qs(parts.query)
    has_user = (parts.username or "username" in options) and (parts.password or "password" in options)
    if not is_loopback_address(str(parts.hostname)) and not (parts.scheme == "rediss" and has_user):
        why = "over a network a queue needs TLS and a user; write rediss://USER:PASSWORD@HOST:PORT"
        raise BadQueueAddress(url, why)
    return url
