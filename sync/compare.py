"""Compare one take of a camera with the headset: motion, sound and clocks, each saying what it knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sync.cameras import CameraTake
from sync.errors import TooShort
from sync.fusion import with_sound
from sync.gyro import HEAD_POSE, PairAlignment, Prior, align_pair
from sync.listening import headset_sound, take_sound
from sync.prior import prior_of
from sync.session import Session
from sync.sound import Heard, align_sounds


@dataclass(frozen=True, slots=True)
class Compared:
    """What motion, sound and clocks say of one take, on take time."""

    take: CameraTake
    epoch: int
    prior: Prior | None
    timestamps: dict[str, Any]
    found: PairAlignment | None
    heard: Heard | None
    problem: str


def compare(session: Session, take: CameraTake) -> Compared | None:
    """Motion first; sound when motion is missing, too little or doubted; clocks when there is nothing else."""
    epoch = session.epoch
    if session.headset is None or epoch is None:
        return None
    host = session.host
    prior, timestamps = prior_of(
        list(take.starts) if host else [], ticks_of_host=host.to_ticks if host else None, epoch_ticks=epoch
    )
    if host is not None:
        timestamps["host_clock"] = {"probes": host.probes, "bound_ms": host.bound_ns / 1e6}
        timestamps["host_clock"]["stretches"] = len(host.lines)
    found, problem = _by_motion(session, take, prior)
    doubted = found is None or found.verdict.status != "aligned"
    heard = _listen(session, take, epoch) if doubted else None
    problem = problem or "; ".join(found.verdict.reasons if found else ())
    if found is not None:
        found = with_sound(found, heard)
    return Compared(take, epoch, prior, timestamps, found, heard, problem)


def _by_motion(session: Session, take: CameraTake, prior: Prior | None) -> tuple[PairAlignment | None, str]:
    """The gyroscopes' answer, or why there is none."""
    if session.gyro is None:
        return (
            None,
            "the headset's gyroscope was not recorded, nor its head pose: there is no motion to compare",
        )
    if take.gyro is None:
        return None, take.problem
    device = session.recording.manifest["devices"][session.headset]
    unit = "rad_per_s" if session.gyro.source == HEAD_POSE else device.get("gyroscope_unit") or "auto"
    try:
        return align_pair(session.gyro, take.gyro, prior=prior, unit=unit), ""
    except TooShort as error:
        return None, str(error)


def _listen(session: Session, take: CameraTake, epoch: int) -> Heard | None:
    """Compare the sounds, where both were recorded; None where not."""
    name = f"{session.headset}/microphone"
    if name not in session.recording.streams or len(session.recording[name]) == 0:
        return None
    camera = take_sound([(file.path, file.start_s) for file in take.readable])
    headset = headset_sound(session.recording[name], epoch) if camera is not None else None
    return align_sounds(headset, camera) if headset is not None and camera is not None else None
