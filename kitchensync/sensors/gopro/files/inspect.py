"""Contents of a GoPro file as one JSON object, for `kitchensync gopro inspect`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kitchensync.sensors.errors import BadGpmf, UnreadableMedia
from kitchensync.sensors.gopro.files.bare_telemetry import bare_blocks
from kitchensync.sensors.gopro.files.clip import Clip
from kitchensync.sensors.gopro.files.clip_clues import clip_clues
from kitchensync.sensors.gopro.files.clue import disagreements
from kitchensync.sensors.gopro.files.media import GoProMedia, open_media
from kitchensync.sensors.gopro.files.telemetry import Payload
from kitchensync.sensors.gopro.mp4 import gpmf
from kitchensync.sensors.gopro.mp4.boxes import looks_like_mp4, wall_clock
from kitchensync.sensors.gopro.mp4.gpmf import Klv, StreamPart
from kitchensync.sensors.gopro.mp4.sample_tables import read_chapter

SHOWN_FIELDS = 6
DECIMALS = 6  # the camera's stamps (STMP) count microseconds


def inspect(path: Path) -> dict[str, Any]:
    """Describe an MP4, or any other file as bare GPMF payloads. Raises `UnreadableMedia` if it is neither."""
    try:
        if path.is_dir():
            raise UnreadableMedia(path, "it is a folder; give a file")
        if looks_like_mp4(path):
            return _inspect_mp4(path)
        damage: list[str] = []
        described = _describe_readable([bytes(block) for block in bare_blocks(path, damage)], damage)
        return described | ({"damage": damage} if damage else {})
    except OSError as error:
        raise UnreadableMedia(path, (error.strerror or str(error)).lower()) from error
    except BadGpmf as error:
        raise UnreadableMedia(path, str(error)) from error


def _describe_readable(payloads: list[bytes], damage: list[str]) -> dict[str, Any]:
    """Describe the readable payloads; the others are listed in `damage`."""
    parts: list[list[StreamPart]] = []
    for number, payload in enumerate(payloads, 1):
        try:
            parts.append(gpmf.read_streams(payload))
        except BadGpmf as error:
            damage.append(f"payload {number} is {error}")
            parts.append([])
    return describe_payloads([len(payload) for payload in payloads], parts, damage)


def _inspect_mp4(path: Path) -> dict[str, Any]:
    """Describe the readable parts; unreadable boxes and payloads are listed under `damage`."""
    damage: list[str] = []
    try:
        media = open_media(path)
    except UnreadableMedia as error:
        read_chapter(path)  # raises an error that names the box, which libav's error does not
        why = str(error).removeprefix(f"{path}: unreadable media file: ")
        raise UnreadableMedia(path, f"box moov: {why}") from error
    with _tolerated(damage, path):
        read_chapter(path)
    payloads: list[Payload] = []
    with _tolerated(damage, path):
        payloads = media.payloads
    described = _describe_readable([payload.data for payload in payloads], damage)
    with _tolerated(damage, path):
        described |= _video(media)
    with _tolerated(damage, path):
        described |= _audio(media)
    described["gpmd_payload_times_s"] = [
        [round(payload.start_s, DECIMALS), round(payload.duration_s, DECIMALS)] for payload in payloads
    ]
    for facts in (_times, _identity, _telemetry_on_pictures):
        with _tolerated(damage, path):
            described |= {key: value for key, value in facts(media).items() if value is not None}
    return described | ({"damage": damage} if damage else {})


@contextmanager
def _tolerated(damage: list[str], path: Path) -> Iterator[None]:
    """Add an error to `damage` instead of raising it."""
    try:
        yield
    except UnreadableMedia as error:
        why = str(error).removeprefix(f"{path}: unreadable media file: ")
        if why not in damage:
            damage.append(why)


def _video(media: GoProMedia) -> dict[str, Any]:
    video = media.video
    if video is None:
        return {}
    return {
        "video": {
            "codec": video.codec,
            "width": video.width,
            "height": video.height,
            "frames": video.frames - media.hidden_frames,
            "fps": f"{video.rate.numerator}/{video.rate.denominator}",
            "duration_s": round(video.duration_s, DECIMALS),
        }
    }


def _audio(media: GoProMedia) -> dict[str, Any]:
    audio = media.audio
    if audio is None:
        return {}
    return {
        "audio": {
            "codec": audio.codec,
            "rate": audio.rate_hz,
            "aac_frames": audio.frames,
            "duration_s": round(audio.duration_s, DECIMALS),
        }
    }


def _times(media: GoProMedia) -> dict[str, Any]:
    wall_s = media.tmcd_wall_seconds_since_midnight
    return {
        "tmcd_frames": media.tmcd_frames,
        "tmcd_wall_seconds_since_midnight": None if wall_s is None else round(wall_s, DECIMALS),
        "tmcd_displayed": media.tmcd_displayed,
        "tmcd_wall_hms": None if wall_s is None else wall_clock(wall_s),
    }


def _telemetry_on_pictures(media: GoProMedia) -> dict[str, Any]:
    """Describe the position of the telemetry relative to the frames and its clues; no position if they disagree."""
    if media.video is None or not media.payloads:
        return {}
    clues, offset_us = clip_clues(Clip([media])), None
    if "GYRO" in media.stream_names and not disagreements(clues):
        offset_us = round(float(media.gyroscope().t_s[0]) * 1e6)
    return {"gyro_first_minus_picture_first_us": offset_us, "clues": [asdict(clue) for clue in clues]}


def _identity(media: GoProMedia) -> dict[str, Any]:
    return {
        "creation_time_as_printed": media.creation_time,
        "firmware": media.firmware,
        "serial": media.serial,
        "tracks_handlers": media.handlers,
    }


def describe_payloads(
    payload_bytes: list[int], payload_parts: list[list[StreamPart]], damage: list[str] | None = None
) -> dict[str, Any]:
    """Describe the telemetry of all payloads, without keys that the file lacks.

    An unreadable stream is listed in `damage`. Raises `BadGpmf` without that list.
    """
    described: dict[str, Any] = {"payloads": len(payload_bytes), "payload_bytes": payload_bytes}
    all_parts = [part for parts in payload_parts for part in parts]
    if not all_parts:
        return described | {"streams": {}}
    first_device = (all_parts[0].device, all_parts[0].device_id)
    described["device"] = first_device[0]
    grouped: dict[str, list[list[StreamPart]]] = {}
    for parts in payload_parts:
        by_name: dict[str, list[StreamPart]] = {}
        for part in parts:
            is_own = (part.device, part.device_id) == first_device
            by_name.setdefault(part.key if is_own else f"{part.device}/{part.key}", []).append(part)
        for name, same in by_name.items():
            grouped.setdefault(name, []).append(same)
    first_us = {name: groups[0][0].integer("STMP") for name, groups in grouped.items()}
    gyro_us, shut_us = first_us.get("GYRO"), first_us.get("SHUT")
    if gyro_us is not None and shut_us is not None:
        described["gyro_first_minus_shut_first_us"] = gyro_us - shut_us
    described["streams"] = {}
    for name, groups in grouped.items():
        try:
            described["streams"][name] = _describe_stream(groups)
        except BadGpmf as error:
            if damage is None:
                raise
            damage.append(f"stream {name} is {error}")
    return described


def _describe_stream(groups: list[list[StreamPart]]) -> dict[str, Any]:
    """Describe one stream; a group has its parts in one payload (nearly always one part)."""
    counts = [sum(part.count for part in group) for group in groups]
    first, last = groups[0][0], groups[-1][0]
    described: dict[str, Any] = {
        "device": first.device,
        "samples": sum(counts),
        "counts_first3": counts[:3],
        "count_last": counts[-1],
        "payloads_with_stream": len(groups),
    }
    for key, name in (("TSMP", "tsmp"), ("STMP", "stmp_us")):
        for part, which in ((first, "first"), (last, "last")):
            value = part.integer(key)
            if value is not None:
                described[f"{name}_{which}"] = value
    described |= _rates(first, last, counts)
    filled = [part for group in groups for part in group if part.count] or [first]
    described["first_scaled_stored_order"] = _sample(filled[0], 0)
    described["last_scaled_stored_order"] = _sample(filled[-1], -1)
    return described | _metadata(first)


def _rates(first: StreamPart, last: StreamPart, counts: list[int]) -> dict[str, float]:
    """Return the rate: samples of all payloads but the last, by the time between the first and the last timestamp."""
    if len(counts) < 2:
        return {}
    before = sum(counts[:-1])
    start_us, end_us = first.integer("STMP"), last.integer("STMP")
    if start_us is not None and end_us is not None:
        span_us = end_us - start_us
        return {"rate_hz_from_stmp": round(before * 1e6 / span_us, 4)} if span_us > 0 else {}
    if first.tick_ms is None or last.tick_ms is None or last.tick_ms <= first.tick_ms:
        return {}
    return {"rate_hz_from_tick": round(before * 1e3 / (last.tick_ms - first.tick_ms), 3)}


def _sample(part: StreamPart, which: int) -> list[float | None] | None:
    """Return one sample of the payload's first data key, scaled, in stored order; text fields are None."""
    values = part.scaled(part.data[0])
    if not values.size:
        return None
    shown = values[which][:SHOWN_FIELDS]
    return [round(float(value), DECIMALS) if math.isfinite(value) else None for value in shown]


def _metadata(part: StreamPart) -> dict[str, Any]:
    """Return the metadata of the first payload, as stored."""
    keys = ("SCAL", "SIUN", "TYPE", "ORIN", "ORIO", "MTRX", "TMPC", "GPSU", "GPSF", "GPSP")
    shown = {key: part.meta[key] for key in keys if key in part.meta}
    return {key: gpmf.text(klv) if klv.kind in "cU" else _values(klv) for key, klv in shown.items()}


def _values(klv: Klv) -> list[Any]:
    """Return the stored numbers, None for those that are not finite; samples of several fields are lists."""
    values = gpmf.numbers(klv)
    number = int if klv.kind in "bBsSlLjJ" else float
    rows = [[number(value) if math.isfinite(value) else None for value in row] for row in values]
    return [row[0] for row in rows] if values.shape[-1] == 1 else rows
