"""A plug-in's stream in the viewer: its numbers as lines, its pictures as they are, by their arrival."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from calibration.space.drawn_time import DrawnTime
from calibration.space.view_parts import TIMELINE, Say, ViewOptions
from storage.recording import StoredStream

MEDIA_TYPES = {"jpeg": "image/jpeg", "png": "image/png"}
"""Codecs whose payloads a viewer shows as they are."""
BLOCK_ROWS = 2_000


def log_plugin(
    stream: StoredStream, time: DrawnTime, shown: ViewOptions, rr: Any, sink: Any, say: Say
) -> str | None:
    """Hand over a plug-in's stream; return why nothing of it can be shown."""
    at = time.session.of_host(stream.index["host_ns"].astype(np.int64))
    if at is None:
        return "no exchange of clocks tells when its packets arrived"
    media_type = MEDIA_TYPES.get(str(stream.format.get("codec")))
    if media_type is not None:
        for row in shown.chosen(at, shown.pictures_per_s):
            if stream.hidden[row]:
                continue
            sink.set_time(TIMELINE, duration=np.timedelta64(int(at[row]), "ns"))
            sink.log(stream.name, rr.EncodedImage(contents=stream.payload(int(row)), media_type=media_type))
            say(stream.name, float(at[row]) / 1e9)
        return None
    shown_any = False
    for start in range(0, len(stream), BLOCK_ROWS):
        rows: dict[str, list[int]] = defaultdict(list)
        values: dict[str, list[float]] = defaultdict(list)
        for row, value in stream.decoded(start, start + BLOCK_ROWS):
            for field, number in numbers(value):
                rows[field].append(row)
                values[field].append(number)
        for field, of_field in values.items():
            column = rr.TimeColumn(TIMELINE, duration=at[rows[field]].astype("timedelta64[ns]"))
            sink.send_columns(f"{stream.name}/{field}", [column], rr.Scalars.columns(scalars=of_field))
            say(stream.name, float(at[rows[field][-1]]) / 1e9)
            shown_any = True
    return None if shown_any else "nobody here knows how to take its packets apart"


def numbers(value: Any) -> Iterator[tuple[str, float]]:
    """Yield (field, number) of a payload taken apart: records by their means, other numbers as they are."""
    if isinstance(value, np.ndarray) and value.dtype.names and len(value):
        yield from ((name, float(value[name].mean(dtype=np.float64))) for name in value.dtype.names)
    elif isinstance(value, dict):
        yield from ((str(key), float(one)) for key, one in value.items() if _is_number(one))
    elif _is_number(value):
        yield "value", float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number | np.bool_)
