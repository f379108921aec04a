"""A recording in Rerun: pictures, depth cloud, poses, hands, gaze, inertial sensors and events on `session_ns`.

Everything is read and handed over piece by piece: memory does not grow with the recording's length. Pictures go as
small JPEGs, a few a second; the recording itself stays what counts.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from kitchensync.calibration.space.drawn_time import DrawnTime, drawn_time
from kitchensync.calibration.space.view_parts import (
    TIMELINE,
    Say,
    ViewOptions,
    log_bodies,
    log_cloud,
    log_events,
    log_inertial,
    log_pv,
)
from kitchensync.calibration.space.view_parts import log_camera as log_camera_file
from kitchensync.reader.cameras.depth_views import CHOICE
from kitchensync.sensors.hololens.catalogue import STREAMS
from kitchensync.sensors.hololens.headset_stream import SAMPLES
from kitchensync.storage.geometry.errors import CalibrationError
from kitchensync.storage.options.outputs import written
from kitchensync.storage.recording import Recording, StoredStream, open_recording

APPLICATION = "kitchensync"
Progress = Callable[[str, float], None]
"""Called with what is being handed over and the second of the session."""


class NoRerun(CalibrationError):
    """The extra `view` is not installed."""

    def __init__(self) -> None:
        super().__init__(
            'Rerun is not installed: pip install "kitchensync[view]" (half a gigabyte), then try again'
        )


def view_recording(
    path: Path,
    save: Path | None = None,
    shown: ViewOptions | None = None,
    progress: Progress | None = None,
    *,
    force: bool = False,
) -> list[str]:
    """Hand a recording to a Rerun viewer that is opened for it, or write it to a file; return what was left out.

    `force` lets the file be replaced.

    Raises NoRerun, Refused, StorageError, CalibrationError when the file cannot be written.
    """
    rr = _rerun()
    shown = shown or ViewOptions()
    target = written(save, force=force) if save is not None else nullcontext()
    with open_recording(path) as recording, target as file:
        time = drawn_time(recording)
        sink = rr.RecordingStream(APPLICATION, recording_id=str(recording.manifest.get("id") or recording.id))
        _open(rr, sink, file, _layout(time))
        left_out = [time.unplaced] if time.unplaced else []
        for name, part in _parts(recording, time, shown):
            if (why := part(rr, sink, progress or (lambda _name, _seconds: None))) is not None:
                left_out.append(f"{name}: {why}")
        sink.flush()
        sink.disconnect()
    return left_out


def _rerun() -> Any:
    os.environ.setdefault("RUST_LOG", "error")  # what it warns of is no news to a user
    try:
        import rerun
    except ImportError as error:
        raise NoRerun from error
    return rerun


def _open(rr: Any, sink: Any, save: Path | None, layout: Any) -> None:
    if save is None:
        open_viewer(sink, layout)
    else:
        try:
            sink.save(save, default_blueprint=layout)
        except (OSError, RuntimeError) as error:
            raise CalibrationError(f"{save} cannot be written: {error}") from error
    sink.log("world", rr.ViewCoordinates.RIGHT_HAND_Y_UP, static=True)


def _parts(
    recording: Recording, time: DrawnTime, shown: ViewOptions
) -> list[tuple[str, Callable[..., str | None]]]:
    """Return name and logger of everything that the recording holds, quick ones first."""
    from functools import partial

    headset = time.headset
    has = {name for name in recording.streams if name.startswith(f"{headset}/") and len(recording[name])}
    parts: list[tuple[str, Callable[..., str | None]]] = [("events", partial(log_events, recording, time))]
    here = {stream: name for stream in STREAMS.values() if (name := f"{headset}/{stream.name}") in has}
    inertial = [name for stream, name in here.items() if stream.kind == SAMPLES]
    bodies = [name for stream, name in here.items() if stream.is_head_pose]
    clouds = [name for short in CHOICE if (name := f"{headset}/{short}") in has]
    cameras = [name for stream, name in here.items() if stream.is_front_camera]
    scales = {name: recording.si_scale(name) or 1.0 for name in inertial}  # where nobody knows, as sent
    parts += [(name, partial(log_inertial, recording[name], time, scales[name])) for name in inertial]
    parts += [(name, partial(log_bodies, recording[name], time)) for name in bodies]
    parts += [(name, partial(log_cloud, recording, name, time, shown)) for name in clouds[:1]]
    parts += [(name, partial(log_pv, recording[name], time, shown)) for name in cameras]
    plugins = [name for name in recording.streams if _is_plugin(recording, name) and len(recording[name])]
    parts += [(name, partial(log_plugin, recording[name], time, shown)) for name in plugins]
    parts += [
        (
            file.file.relative_to(recording.readable).as_posix(),
            partial(log_camera_file, recording, file, time, shown),
        )
        for file in time.cameras
    ]
    return parts


def _is_plugin(recording: Recording, name: str) -> bool:
    device = recording.manifest["devices"].get(name.partition("/")[0], {})
    return device.get("kind") == "plugin"


def _layout(time: DrawnTime) -> Any:
    """Return how the viewer arranges it at first: space left, pictures right, sensors and events below."""
    import rerun.blueprint as rrb

    cameras = sorted({file.file.parent.name for file in time.cameras})
    pictures = [rrb.Spatial2DView(origin="world/pv", name="front camera")]
    pictures += [rrb.Spatial2DView(origin=camera, name=camera) for camera in cameras]
    inertial = [rrb.TimeSeriesView(origin=f"{time.headset}/gyroscope", name="headset's gyroscope, as sent")]
    inertial += [
        rrb.TimeSeriesView(origin=f"{camera}/gyroscope", name=f"{camera}'s gyroscope, rad/s")
        for camera in cameras
    ]
    above = rrb.Horizontal(rrb.Spatial3DView(origin="world", name="kitchen"), rrb.Vertical(*pictures))
    below = rrb.Horizontal(*inertial, rrb.TextLogView(origin="events", name="events"))
    return rrb.Blueprint(rrb.Vertical(above, below, row_shares=[3, 1]), collapse_panels=True)


VIEWER_MEMORY = "2GB"
"""What the viewer keeps: it lets go of the oldest beyond this."""
VIEWER_STARTS_S = 60.0
LOOPBACK = "127.0.0.1"


def open_viewer(sink: Any, layout: Any) -> None:
    """Open the viewer and let a recording stream talk to it; by itself it would listen on every interface.

    Raises CalibrationError where there is no screen, or the viewer does not start.
    """
    if sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys():
        raise CalibrationError(
            "there is no screen here; give --save FILE.rrd and open that where there is one"
        )
    with socket.socket() as free:
        free.bind((LOOPBACK, 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-P", "-m", "rerun_cli", "--bind", LOOPBACK, "--port", str(port)]
    command += ["--memory-limit", VIEWER_MEMORY, "--hide-welcome-screen"]
    with tempfile.TemporaryFile("w+") as told:
        viewer = subprocess.Popen(command, stdout=told, stderr=told, start_new_session=True)
        until_s = time.monotonic() + VIEWER_STARTS_S
        while not _answers(port):
            if viewer.poll() is not None or time.monotonic() > until_s:
                viewer.kill()
                told.seek(0)
                why = (told.read().strip().splitlines() or ["it says nothing"])[-1]
                raise CalibrationError(f"the viewer does not start ({why}); try --save FILE.rrd")
            time.sleep(0.1)
    sink.connect_grpc(f"rerun+http://{LOOPBACK}:{port}/proxy", default_blueprint=layout)


def _answers(port: int) -> bool:
    try:
        socket.create_connection((LOOPBACK, port), 1).close()
    except OSError:
        return False
    return True


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
            content = stream.payload(int(row))
            if int(row) in stream.bad:
                continue
            sink.set_time(TIMELINE, duration=np.timedelta64(int(at[row]), "ns"))
            sink.log(stream.name, rr.EncodedImage(contents=content, media_type=media_type))
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
