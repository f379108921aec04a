"""Show a recording in Rerun: video, depth, poses, hands, gaze, inertial sensors and events on `session_ns`.

Video, depth and motion of the headset are read and sent in blocks; only head, hands, gaze, records of plug-in sensors
and a camera's motion are in memory as a whole. Frames are sent as small JPEGs, a few a second.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from kitchensync.calibration.space.view_parts import SHOW, ViewerSink, ViewOptions, show_events
from kitchensync.reader.body_streams import BodyStream
from kitchensync.reader.cameras.depth_views import CHOICE
from kitchensync.reader.motion_streams import HeadsetMotion
from kitchensync.reader.opened_recording import OpenedRecording
from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.hololens.catalogue import is_front_camera
from kitchensync.storage.errors import StorageError, pass_on_trouble
from kitchensync.storage.geometry.errors import CalibrationError, Refused
from kitchensync.storage.options.outputs import written
from kitchensync.storage.reading.stream_kinds import CAMERA

APPLICATION = "kitchensync"
Progress = Callable[[str, float], None]
"""Called with the stream that is being sent and the second of the session."""


class NoRerun(CalibrationError):
    """The extra `view` is not installed."""

    def __init__(self) -> None:
        super().__init__(
            'Rerun is not installed: pip install "kitchensync[view]" (half a gigabyte), then try again'
        )


def view_recording(
    path: Path,
    save: Path | None = None,
    options: ViewOptions | None = None,
    progress: Progress | None = None,
    *,
    force: bool = False,
) -> list[str]:
    """Show a recording in a new Rerun viewer, or write it to the file `save`; return the streams that were left out.

    `force` allows to replace the file. Raises NoRerun, Refused, StorageError, and CalibrationError if the file cannot
    be written.
    """
    rr = _rerun()
    options = options or ViewOptions()
    target = written(save, force=force) if save is not None else nullcontext()
    with OpenedRecording(path) as rec, target as file:
        stream = rr.RecordingStream(APPLICATION, recording_id=str(rec.stored.manifest.get("id") or rec.id))
        _open(rr, stream, file, _layout(rec))
        sink, left_out = ViewerSink(rr, stream, progress or (lambda _name, _seconds: None)), []
        for name, show in _parts(rec, options):
            try:
                show(sink)
            except (StorageError, SensorError, Refused) as error:
                pass_on_trouble(error)
                left_out.append(f"{name}: {error}")
        stream.flush()
        stream.disconnect()
    return left_out


def _rerun() -> Any:
    os.environ.setdefault("RUST_LOG", "error")  # its warnings are of no use to a user
    try:
        import rerun
    except ImportError as error:
        raise NoRerun from error
    return rerun


def _open(rr: Any, stream: Any, save: Path | None, layout: Any) -> None:
    if save is None:
        open_viewer(stream, layout)
    else:
        try:
            stream.save(save, default_blueprint=layout)
        except (OSError, RuntimeError) as error:
            raise CalibrationError(f"{save} cannot be written: {error}") from error
    stream.log("world", rr.ViewCoordinates.RIGHT_HAND_Y_UP, static=True)


def _parts(rec: OpenedRecording, options: ViewOptions) -> Iterator[tuple[str, Callable[[ViewerSink], None]]]:
    """Yield name and function of every part of the recording to show, fast ones first."""
    yield "events", partial(show_events, rec)
    devices, head = rec.stored.manifest["devices"], f"{rec.clock.main_headset}/"
    sent = [name for name in rec.stored.streams if len(rec.stored[name])]
    of_headset = [name for name in (*sent, *rec.bodies) if name.startswith(head)]
    sensors = [name for name in of_headset if issubclass(rec.kind_of(name), (HeadsetMotion, BodyStream))]
    depth = [head + short for short in CHOICE if head + short in sent][:1]
    front = [name for name in of_headset if is_front_camera(name)]
    plugin_devices = {name for name, facts in devices.items() if facts["kind"] == "plugin"}
    plugins = [name for name in sent if name.partition("/")[0] in plugin_devices]
    kinds = (*CAMERA["imu"], *CAMERA["pictures"])
    films = [f"{camera}/{kind}" for camera in rec.film_cameras for kind in kinds]
    for name in (*sensors, *depth, *front, *plugins, *films):
        yield name, partial(SHOW[rec.kind_of(name)], rec[name], options)


def _layout(rec: OpenedRecording) -> Any:
    """Return the initial layout of the viewer: space left, cameras right, sensors and events below."""
    import rerun.blueprint as rrb

    pictures = [rrb.Spatial2DView(origin="world/pv", name="front camera")]
    pictures += [rrb.Spatial2DView(origin=camera, name=camera) for camera in rec.film_cameras]
    inertial = [
        rrb.TimeSeriesView(origin=f"{device}/gyroscope", name=f"{device}'s gyroscope")
        for device in (rec.clock.main_headset, *rec.film_cameras)
        if device
    ]
    above = rrb.Horizontal(rrb.Spatial3DView(origin="world", name="kitchen"), rrb.Vertical(*pictures))
    below = rrb.Horizontal(*inertial, rrb.TextLogView(origin="events", name="events"))
    return rrb.Blueprint(rrb.Vertical(above, below, row_shares=[3, 1]), collapse_panels=True)


VIEWER_MEMORY = "2GB"
"""Memory limit of the viewer, which discards the oldest data above it."""
VIEWER_START_S = 60.0
LOOPBACK = "127.0.0.1"


def open_viewer(sink: Any, layout: Any) -> None:
    """Open the viewer and connect a recording stream to it.

    Raises CalibrationError if there is no screen, or the viewer does not start.
    """
    if sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys():
        raise CalibrationError(
            "there is no screen here; give --save FILE.rrd and open that where there is one"
        )
    with socket.socket() as free:
        free.bind((LOOPBACK, 0))
        port = free.getsockname()[1]
    # Started by ourselves, because by default the viewer listens on every interface.
    command = [sys.executable, "-P", "-m", "rerun_cli", "--bind", LOOPBACK, "--port", str(port)]
    command += ["--memory-limit", VIEWER_MEMORY, "--hide-welcome-screen"]
    with tempfile.TemporaryFile("w+") as output:
        viewer = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
        until_s = time.monotonic() + VIEWER_START_S
        while not _answers(port):
            if viewer.poll() is not None or time.monotonic() > until_s:
                viewer.kill()
                output.seek(0)
                why = (output.read().strip().splitlines() or ["no output"])[-1]
                raise CalibrationError(f"the viewer does not start ({why}); try --save FILE.rrd")
            time.sleep(0.1)
    sink.connect_grpc(f"rerun+http://{LOOPBACK}:{port}/proxy", default_blueprint=layout)


def _answers(port: int) -> bool:
    try:
        socket.create_connection((LOOPBACK, port), 1).close()
    except OSError:
        return False
    return True
