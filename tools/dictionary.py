"""The page that says what every field means that a headset sends, a recording keeps or a data set releases."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from itertools import groupby

import numpy as np

from kitchensync.dataset.data_set_cards.data_dictionary import COLUMNS, CONVENTIONS
from kitchensync.sensors.hololens.catalogue import STREAMS
from kitchensync.sensors.hololens.headset_stream import RECORDS, HeadsetStream
from kitchensync.sensors.hololens.profile import Profile
from kitchensync.sensors.hololens.streams.spatial_input import JOINTS

HEAD = """# Data dictionary

Written by `make docs` from the types that decode the bytes: what every field means in a packet as it lies in a
recording, and in the files of a released data set. What `kitchensync.open` gives of them is upright, in SI units and
named by frames: [read a recording from Python](../how-to/read-a-recording.md). How packets lie in a file:
[the recording format](recording-format.md).
"""
FIELDS = {
    "vinyl_ns": ("ns", "the sensor's own clock, one stamp a sample"),
    "soc_ticks": (
        "100 ns",
        "the headset's clock; all samples of a packet carry the same one, a fault of its driver",
    ),
    "temperature": ("°C", "of the sensor; in the magnetometer it means nothing"),
    "focal_length": ("pixel", "fx, fy; they change with the focus"),
    "principal_point": ("pixel", "cx, cy"),
    "exposure_ns": ("ns", "how long the picture was exposed"),
    "gain": ("", "in units of the sensor"),
    "exposure_time": ("100 ns", "how long the picture was exposed"),
    "exposure_compensation": ("", "flags, and a value in the low half, as the operating system gives them"),
    "lens_position": ("", "of the focus, as the driver counts"),
    "focus_state": ("", "0 not started, 1 lost, 2 searching, 3 focused, 4 failed"),
    "iso_speed": ("", "sensitivity"),
    "white_balance": ("K", "colour temperature"),
    "iso_gains": ("", "analog, digital"),
    "white_balance_gains": ("", "red, green, blue"),
    "width": ("pixel", "of the picture delivered"),
    "height": ("pixel", "of the picture delivered"),
}
"""What a recording keeps and a data set does not release under that name -> unit, meaning."""
OF_ONE_STREAM = {
    ("vlc", "sensor_ticks"): ("ns", "the sensor's own clock, the better key to pair the four grey cameras"),
    ("eye_tracking", "valid"): (
        "",
        "bits of what is known: 1 calibration, 2 both eyes, 4 left ray, 8 right ray, 16 and 32 openness of the left "
        "and right eye, 64 vergence",
    ),
}
"""Where a field means what it means in one stream alone, by the module that decodes it."""
LENS = ", then its `metadata` of 80 bytes:"
PAYLOADS = {
    "pv": "one encoded picture (H.264 or H.265, Annex B) or raw NV12" + LENS,
    "vlc": "one encoded grey picture or 640 x 480 raw bytes, then its `metadata` of 24 bytes:",
    "depth_ahat": "`size_z`, `size_ab` (u32), the depth and the brightness (one video picture, a Zdepth blob and a "
    "video picture, or raw u16), then `sensor_ticks` (u64, of 62.976 MHz).",
    "depth_longthrow": "a PNG of depth and brightness, then `sensor_ticks` (u64, of 62.976 MHz).",
    "microphone": "one AAC frame with its ADTS header, or raw samples.",
    "extended_audio": "one AAC frame with its ADTS header, or raw samples.",
    "extended_video": "one encoded or raw picture"
    + LENS[:-1]
    + ", of which only width and height are filled:",
    "extended_depth": "a Zdepth blob or a raw u16 picture in the camera's own unit, then its width and height (u16).",
}
"""What a packet is that is no table of fields, by the module that decodes it."""
ONE, MANY = (
    "one record:",
    "some samples in the sensor's own axes, each of them:",
)


def dictionary_page() -> str:
    """Return the page, made from the types of the streams and from the columns of a data set."""
    lines = [HEAD, "## Conventions of a data set", "", "| subject | convention |", "|---|---|"]
    lines += [f"| {subject} | {words} |" for subject, words in CONVENTIONS.items()]
    lines += ["", f"Joints of a hand, in this order: {', '.join(JOINTS)}.", ""]
    for module, streams in groupby(STREAMS.values(), lambda stream: stream.module):
        lines += _section(module, list(streams))
    lines += ["## Columns of a data set", "", "| array | unit | meaning |", "|---|---|---|"]
    lines += [f"| `{name}` | {unit} | {words} |" for name, (unit, words) in COLUMNS.items()]
    return "\n".join(lines) + "\n"


def _section(module: str, streams: list[HeadsetStream]) -> list[str]:
    """Return what a packet of some streams is that one module decodes, and its fields."""
    decoder, first = module.rpartition(".")[2], streams[0]
    about = f"Port {', '.join(str(stream.port) for stream in streams)}; {first.rate_hz(Profile()):g} packets a second"
    about += ", each with the pose of the sensor. " if first.has_pose else ". "
    about += f"A packet is {PAYLOADS.get(decoder, ONE if first.kind == RECORDS else MANY)}"
    lines = [f"## {', '.join(f'`{stream.name}`' for stream in streams)}", "", about, ""]
    record = first.record or getattr(importlib.import_module(module), "METADATA", None)
    if record is not None:
        lines += ["| field | type | unit | meaning |", "|---|---|---|---|"]
        for name, kind in _fields(record):
            unit, meaning = _meaning(decoder, first, name)
            lines.append(f"| `{name}` | {kind} | {unit} | {meaning} |")
        lines.append("")
    if first.constants:
        lines += ["| constant of the sensor | shape | unit | frame | meaning |", "|---|---|---|---|---|"]
        for one in first.constants:
            shape = ", ".join(map(str, one.shape))
            lines.append(f"| `{one.name}` | {shape} | {one.unit} | {one.frame} | {one.meaning} |")
        lines.append("")
    return lines


def _fields(record: np.dtype) -> Iterator[tuple[str, str]]:
    """Yield name and type of every field, of fields within fields `outer.inner`."""
    for name in record.names or ():
        kind = record[name]
        if kind.base.names:
            count = "" if kind.shape == () else f"[{kind.shape[0]}]"
            yield from ((f"{name}{count}.{inner}", text) for inner, text in _fields(kind.base))
        else:
            shape = f" ({', '.join(map(str, kind.shape))})" if kind.shape else ""
            yield name, f"{kind.base.name}{shape}"


def _meaning(decoder: str, stream: HeadsetStream, field: str) -> tuple[str, str]:
    """Return unit and meaning of a field. Raises KeyError for one that nobody described."""
    if (decoder, field) in OF_ONE_STREAM:
        return OF_ONE_STREAM[decoder, field]
    if field == "xyz":
        unit = stream.details(Profile())["unit"]
        gravity = "; gravity is in it: at rest 9.8 away from the ground" if unit == "m/s^2" else ""
        return unit, f"three axes of the sensor{gravity}"
    known = COLUMNS | FIELDS
    outer, _, inner = field.partition(".")
    return known[inner] if inner in known else known[f"{outer}_{inner}" if inner else outer]
