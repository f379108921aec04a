"""What is to be recorded with what: the options of `record`, or a rig file."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

from capture.errors import BadRig
from capture.order import RecordingRequest
from capture.plan import HeadsetPlan, SensorPlan
from capture.queue.address import check_address
from sensors.errors import SensorError
from sensors.gopro.open_camera import SCHEMES
from sensors.gopro.settings import wanted_options
from sensors.hololens.catalogue import DEFAULT_SET, Profile, forbidden_together, stream_spec
from sensors.plugin import load_sensor
from storage.names import check_recording_id

GYROSCOPE_UNITS = ("auto", "deg_per_s", "rad_per_s")
LINGER_MS = range(21)
PROFILE_KEYS = tuple(field.name for field in fields(Profile) if field.name != "link")


def order_from(recording: str, options: dict[str, Any]) -> RecordingRequest:
    """Make the order from the options of the command. Raises BadRig, BadQueueAddress, SensorError."""
    rig = read_rig(options["rig"]) if options["rig"] else {}
    if rig and (options["hololens"] or options["gopro"]):
        raise BadRig("give either --rig or the devices themselves (--hololens, --gopro), not both")
    hololens = list(options["hololens"]) or rig.get("hololens", [])
    gopro = list(options["gopro"]) or rig.get("gopro", [])
    tables = rig.get("sensor", {})
    if not hololens and not gopro and not tables:
        raise BadRig("nothing to record: give --hololens HOST, --gopro URL, or --rig rig.toml")
    shared = {key: rig[key] for key in ("link", *PROFILE_KEYS) if key in rig}
    asked = {"link": options["link"]} if options["link"] else {}
    own = rig.get("own settings", {})
    streams = options["streams"].split(",") if options["streams"] else rig.get("streams")
    sensors = sensors_from(tables, streams)
    of_sensors = {f"{sensor.name}/{short}" for sensor in sensors for short in sensor.streams}
    of_headsets = None if streams is None else [name for name in streams if name not in of_sensors]
    _different_names([*_named(hololens, "hololens", ""), *_named(gopro, "gopro", ""), *tables])
    return RecordingRequest(
        recording=recording,
        data=options["data"],
        headsets=headsets_from(hololens, of_headsets, shared, own, asked),
        sensors=sensors,
        cameras=cameras_from(gopro),
        camera_settings=rig.get("camera", {}),
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
        gyroscope_unit=rig.get("gyroscope_unit", "auto"),
        linger_ms=rig.get("linger_ms", LINGER_MS[-1]),
    )


def read_rig(path: Path) -> dict[str, Any]:
    """Read rig.toml: `link`, `streams`, `hololens` and `gopro` as lists of "NAME=ADDRESS". Raises BadRig.

    "own settings" maps headsets to what holds for them alone.
    """
    try:
        rig = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadRig(f"{path}: cannot be read ({error})") from error
    known = {
        "link",
        "streams",
        "hololens",
        "gopro",
        "camera",
        "sensor",
        "gyroscope_unit",
        "linger_ms",
        *PROFILE_KEYS,
    }
    if strange := sorted(set(rig) - known):
        raise BadRig(f"{path}: unknown setting {', '.join(strange)}; known: {', '.join(sorted(known))}")
    if rig.get("gyroscope_unit", "auto") not in GYROSCOPE_UNITS:
        raise BadRig(f"{path}: gyroscope_unit is one of {', '.join(GYROSCOPE_UNITS)}")
    if rig.get("linger_ms", 0) not in LINGER_MS:
        raise BadRig(f"{path}: linger_ms is 0 to {LINGER_MS[-1]}")
    try:
        wanted_options(rig.get("camera"))
    except (ValueError, TypeError) as error:
        raise BadRig(f"{path}: [camera] {error}") from error
    tables = rig.get("sensor", {})
    if not isinstance(tables, dict) or not all(_is_sensor(table) for table in tables.values()):
        raise BadRig(f'{path}: write [sensor.NAME] and below it kind = "..." and what the sensor wants')
    rig["own settings"] = _own_settings(path, rig)
    for kind in ("hololens", "gopro"):
        devices = rig.get(kind, {})
        if not isinstance(devices, dict) or not all(isinstance(value, str) for value in devices.values()):
            raise BadRig(f'{path}: write [{kind}] and below it lines such as {kind} = "ADDRESS"')
        rig[kind] = [f"{name}={address}" for name, address in devices.items()]
    return rig


def _own_settings(path: Path, rig: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Take the tables [hololens.NAME] out of a rig: their settings by name; in their place the addresses stay."""
    devices = rig.get("hololens")
    if not isinstance(devices, dict):
        return {}
    tables = {name: value for name, value in devices.items() if isinstance(value, dict)}
    for name, table in tables.items():
        if not isinstance(table.get("address"), str):
            raise BadRig(f'{path}: [hololens.{name}] wants a line address = "ADDRESS"')
        if strange := sorted(set(table) - {"address", "link", *PROFILE_KEYS}):
            raise BadRig(f"{path}: [hololens.{name}] unknown setting {', '.join(strange)}")
        devices[name] = table["address"]
    return {name: {key: table[key] for key in table if key != "address"} for name, table in tables.items()}


def _is_sensor(table: Any) -> bool:
    return isinstance(table, dict) and isinstance(table.get("kind"), str)


def sensors_from(tables: dict[str, dict[str, Any]], streams: list[str] | None) -> list[SensorPlan]:
    """Make the plug-in sensors of a rig; `streams` chooses by full names. Raises SensorError."""
    plans = []
    for name, table in tables.items():
        settings = {key: value for key, value in table.items() if key != "kind"}
        offered = [stream.name for stream in load_sensor(table["kind"], settings).streams()]
        chosen = [short for short in offered if streams is None or f"{name}/{short}" in streams]
        if chosen:
            plans.append(SensorPlan(check_recording_id(name), table["kind"], chosen, settings))
    return plans


def _different_names(names: list[str]) -> None:
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise BadRig(f"two devices are called {', '.join(sorted(twice))}; give each a name of its own")


def headsets_from(
    options: list[str],
    streams: list[str] | None,
    shared: dict[str, Any],
    own: dict[str, dict[str, Any]],
    asked: dict[str, Any],
) -> list[HeadsetPlan]:
    """Read `[NAME=]HOST` options; `streams` are full names, or short ones where only one device has them.

    A headset's settings: those of the rig, changed by its own, changed by those asked for now. Raises BadRig.
    """
    named = _named(options, "hololens", "--hololens hololens-a=HOST --hololens hololens-b=HOST")
    plans = []
    for name, host in named.items():
        profile = {"link": "wifi"} | shared | own.get(name, {}) | asked
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


def cameras_from(options: list[str]) -> dict[str, str]:
    """Read `[NAME=]URL` options of cameras."""
    named = _named(options, "gopro", "--gopro gopro-left=URL --gopro gopro-right=URL")
    for name, url in named.items():
        if not url.startswith(SCHEMES):
            ways = "http://HOST:PORT, usb:SERIAL, cohn:NAME or ble:ID"
            raise BadRig(f"camera {name}: {url!r} is no address; write --gopro {ways}")
    return named


def _named(options: list[str], default: str, example: str) -> dict[str, str]:
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
                stream_spec(short)
            except SensorError as error:
                raise BadRig(str(error)) from error
            chosen.append(short)
    return chosen
