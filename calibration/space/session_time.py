"""Session time of a recording: nanoseconds since the main headset's first packet, on its clock, for all devices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibration.errors import NotAligned, Refused
from calibration.recorded import Alignment, alignments
from sensors import clock_probe
from storage.errors import StorageError
from storage.names import CLOCK_STREAMS
from storage.recording import Recording

Int64 = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

NS_PER_TICK = 100
BEST_PROBES = 0.25
"The quarter of the probes with the shortest way there and back tells the capture clock."


@dataclass(frozen=True)
class SessionTime:
    """`session_ns` of device ticks, media seconds and host times."""

    headset: str
    ticks0: int
    cameras: tuple[Alignment, ...]
    "Aligned camera files that ride with this headset."
    host: tuple[Int64, Int64] | None
    "Host ns and ticks of good probes, both ascending; None without probes."
    unplaced: str
    "Why no camera is on this clock; empty when one is."

    def of_ticks(self, ticks: npt.ArrayLike) -> Int64:
        """Return session ns of device ticks (n,)."""
        return (np.asarray(ticks, np.int64) - self.ticks0) * NS_PER_TICK

    def of_media(self, camera: Alignment, media_s: npt.ArrayLike) -> Int64:
        """Return session ns of media seconds (n,) of a camera's file."""
        return self.of_ticks(camera.ticks_of(np.asarray(media_s, np.float64)))

    def of_host(self, host_ns: npt.ArrayLike) -> Int64 | None:
        """Return session ns of host times (n,), good to a millisecond or two; None when no probe tells."""
        if self.host is None:
            return None
        known_ns, ticks = self.host
        at = np.asarray(host_ns, np.int64)
        between = np.interp(at - known_ns[0], known_ns - known_ns[0], self.of_ticks(ticks))
        beyond = at - np.clip(
            at, known_ns[0], known_ns[-1]
        )  # before the first and after the last, at equal pace
        return np.rint(between + beyond).astype(np.int64)


def session_time(recording: Recording) -> SessionTime:
    """Return the session time of a recording. Raises Refused when no headset sent anything."""
    headsets = [
        name for name, device in recording.manifest["devices"].items() if device["kind"] == "hololens"
    ]
    firsts = {name: _first_ticks(recording, name) for name in headsets}
    known = {name: ticks for name, ticks in firsts.items() if ticks is not None}
    if not known:
        raise Refused(f"{recording.id} holds no packet of a headset: there is no clock to put things on")
    headset = next(iter(known))
    try:
        cameras, why = [file for file in alignments(recording) if file.headset == headset], ""
    except NotAligned as error:
        cameras, why = [], str(error)
    return SessionTime(headset, known[headset], tuple(cameras), _host(recording, headset), why)


def _first_ticks(recording: Recording, headset: str) -> int | None:
    firsts = []
    for name in recording.streams:
        if name.startswith(f"{headset}/") and len(recording[name]):
            firsts.append(int(recording[name].index["device_ticks"][0]))
    return min(firsts, default=None)


def _host(recording: Recording, headset: str) -> tuple[Int64, Int64] | None:
    try:
        parts = [
            clock_probe.decode(payload) for payload in recording[f"{CLOCK_STREAMS}/{headset}"].payloads()
        ]
    except StorageError:
        return None
    if not parts:
        return None
    probes = np.concatenate(parts)
    way = probes["host_receive_ns"] - probes["host_send_ns"]
    good = probes[way <= np.quantile(way, BEST_PROBES)]
    middle = good["host_send_ns"] + (good["host_receive_ns"] - good["host_send_ns"]) // 2
    order = np.argsort(middle)
    return middle[order], good["device_ticks"][order].astype(np.int64)
