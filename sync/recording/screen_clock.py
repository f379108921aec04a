"""What a recording's cameras saw of the tablet's screen clock: pictures to pictures, past every gyroscope.

The tablet's log says when the clock was shown (`screen_clock`); only pictures around these moments are decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sensors.array_types import Floats, UInt8
from sensors.errors import SensorError
from sensors.gopro.media import GoProMedia, open_media
from sensors.hololens.catalogue import FRONT_CAMERA
from storage.events import Event
from storage.exports.hidden_films import hidden_in_film
from storage.reading.pictures import read_frames
from storage.timeline.alignment_evidence import ScreenEvidence
from storage.timeline.clock_map import TICKS_PER_S, ClockMap
from sync.recording.cameras import CameraFile
from sync.recording.noted import read_noted
from sync.recording.session import Headset, Session

KIND = "screen_clock"
BEFORE_S, AFTER_S = 0.6, 3.4
"Pictures are read from so long before to so long after the clock was put on the screen."
NOMINAL_HZ = 60.0
FRONT_READ_OUT_S, FRONT_READ_OUT_SIGMA_S = 0.0085, 0.005
"The headset says nothing of its front camera's: between none at all and half a period of its pictures."
CAMERA_READ_OUT_S, CAMERA_READ_OUT_SIGMA_S = 0.016, 0.006
"Of a camera whose header says nothing; one that tells it is believed to a twentieth."
TOLD_READ_OUT = 0.05
USUAL_LATENCY_MS = 30.0
"Pictures that are further from their stamps than this are told: sync takes 0 give or take 15 ms."


def measure_screen(
    session: Session, file: CameraFile, clock_map: ClockMap, headset: Headset
) -> ScreenEvidence | None:
    """Compare what a camera's file and the headset's front camera saw of the tablet's clock.

    None where the log names no showing while the file runs, or there is nothing to compare with. Never raises for
    pictures that show nothing: `slates` is empty then.
    """
    shown = shown_clocks(session)
    if not shown or headset.host is None or not headset.has(FRONT_CAMERA):
        return None
    from sync.screen.offset import ReadOut, slate_offsets, together

    spans = [_span(event) for event in shown]
    hz = float(np.median([_refresh_hz(event) for event in shown]))
    ticks = headset.host.to_ticks(np.array(spans, np.int64).ravel()).reshape(-1, 2)
    media_s = clock_map.to_media(ticks)
    filmed = (media_s[:, 1] > 0) & (media_s[:, 0] < file.frame_times_s[-1])
    if not filmed.any():
        return None  # other chapters hold them
    ticks, media_s = ticks[filmed], media_s[filmed]
    target = _seen_by_front(headset, ticks, hz, clock_map.epoch_ticks)
    media = open_media(file.path)
    told = media.read_out_s
    source_out = (
        ReadOut(told, told * TOLD_READ_OUT) if told else ReadOut(CAMERA_READ_OUT_S, CAMERA_READ_OUT_SIGMA_S)
    )
    source = _seen_by_camera(session, media, file, media_s, hz, source_out.seconds)
    epoch = clock_map.epoch_ticks
    slates = slate_offsets(
        source, target, lambda t_s: (int(clock_map.to_ticks(t_s)) - epoch) / TICKS_PER_S,
        (source_out, ReadOut(FRONT_READ_OUT_S, FRONT_READ_OUT_SIGMA_S)),
    )  # fmt: skip
    found = together(slates)
    said = [
        {
            "number": one.number, "t_s": round(one.source_s, 4), "late_ms": round(one.late_s * 1e3, 3),
            "sigma_ms": round(one.sigma_s * 1e3, 3), "pictures": list(one.pictures),
        }
        for one in slates
    ]  # fmt: skip
    if found is None:
        return ScreenEvidence(shown=len(ticks), slates=said)
    return ScreenEvidence(
        len(ticks), said,
        late_ms=round(found.late_s * 1e3, 3),
        sigma_ms=round(found.sigma_s * 1e3, 3),
        bound95_ms=round(found.bound95_s * 1e3, 3),
    )  # fmt: skip


def shown_clocks(session: Session) -> list[Event]:
    """Return the events at which a tablet showed its clock."""
    events, _ = read_noted(session.recording.path)
    return [event for event in events if event.get("kind") == KIND]


def differs(found: ScreenEvidence, stored: dict[str, Any] | None) -> str:
    """Say how what the screen shows contradicts what was known of the camera before; nothing where it does not."""
    if found.late_ms is None or found.bound95_ms is None:
        return ""
    said = f"the screen clock shows pictures {found.late_ms:+.1f} ms from their stamps (+-{found.bound95_ms:.1f})"
    if stored is None:
        return said if abs(found.late_ms) > USUAL_LATENCY_MS + found.bound95_ms else ""
    apart = abs(found.late_ms - float(stored["latency_ms"]))
    if apart <= found.bound95_ms + 2 * float(stored["sigma_ms"]):
        return ""
    return f"{said}; measured for this camera before: {float(stored['latency_ms']):+.1f} ms"


def _span(event: Event) -> tuple[int, int]:
    """Return the host ns between which pictures may show it."""
    at_ns, doubt_ns = int(event["host_ns"]), int(event.get("uncertainty_ns") or 0)
    return at_ns - doubt_ns - round(BEFORE_S * 1e9), at_ns + doubt_ns + round(AFTER_S * 1e9)


def _refresh_hz(event: Event) -> float:
    said = event["body"].get("refresh_hz")
    return float(said) if isinstance(said, int | float) and 20.0 <= said <= 500.0 else NOMINAL_HZ


def _seen_by_front(headset: Headset, spans: np.ndarray, hz: float, epoch: int) -> list[Any]:
    """Return the showings that the front camera saw, on seconds since `epoch`; `spans` (n, 2) are ticks."""
    stream = headset.recording[f"{headset.name}/{FRONT_CAMERA}"]
    stamps, exposures = stream.index["device_ticks"], list[float]()

    def pictures() -> Iterator[tuple[float, UInt8]]:
        for first, last in np.searchsorted(stamps, spans):
            for frame in read_frames(stream, int(first), int(last)):
                exposures.append(int(frame.metadata["exposure_time"]) / TICKS_PER_S)
                yield (frame.device_ticks - epoch) / TICKS_PER_S, frame.grey()

    return _showings(pictures(), exposures, hz, FRONT_READ_OUT_S)


def _seen_by_camera(
    session: Session, media: GoProMedia, file: CameraFile, spans: Floats, hz: float, read_out_s: float
) -> list[Any]:
    """Return the showings that a camera's file holds, on its media time; `spans` (n, 2) are media seconds."""
    times, numbers = media.frame_times_s, list[int]()
    for first_s, last_s in spans:
        numbers += range(*np.searchsorted(times, (first_s, last_s)))
    rows = np.unique(np.array(numbers, np.int64))
    rows = rows[~hidden_in_film(session.recording, file.path, times[rows])]
    exposures = _exposures(media, times[rows])

    def pictures() -> Iterator[tuple[float, UInt8]]:
        with media.pictures() as reader:
            for row in rows:
                try:
                    yield float(times[row]), reader.grey(int(row))
                except SensorError:
                    continue  # said by verify --deep; the other pictures of the showing serve

    return _showings(pictures(), exposures, hz, read_out_s)


def _exposures(media: GoProMedia, t_s: Floats) -> list[float]:
    """Return the exposures around some media times, seconds; nothing where the camera does not tell them."""
    try:
        track = media.samples("SHUT")
    except SensorError:
        return []
    near = np.searchsorted(track.t_s, t_s).clip(0, len(track.t_s) - 1) if len(track.t_s) else np.empty(0, int)
    return [float(value) for value in track.values[near, 0]]


def _showings(
    pictures: Iterator[tuple[float, UInt8]], exposures: list[float], hz: float, read_out_s: float
) -> list[Any]:
    """Look for the screen in each picture and put what is found on lines."""
    from sync.screen.find import find_screen
    from sync.screen.phase import showings

    read = [(t_s, seen) for t_s, grey in pictures if (seen := find_screen(grey)) is not None]
    exposure = float(np.median(exposures)) * hz if exposures else None
    times = np.array([t_s for t_s, _ in read])
    return showings(times, [seen for _, seen in read], read_out_s, exposure or None)[0]
