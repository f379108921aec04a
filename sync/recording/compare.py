"""Compare one take of a camera with the headset: motion, sound and clocks, each saying what it knows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sensors.hololens.catalogue import MICROPHONE
from storage.timeline.alignment import NOT_ALIGNED, OtherHeadset
from storage.timeline.alignment_evidence import ClockEvidence, HostClockEvidence
from sync.align.fusion import with_restarts, with_sound
from sync.align.gyro import align_pair
from sync.align.headset_gyro import HEAD_POSE
from sync.align.pair_alignment import PairAlignment, Prior
from sync.align.prior import prior_of
from sync.align.sound import Heard, align_sounds
from sync.align.verdict import Verdict
from sync.errors import BadArrays, TooShort
from sync.recording.cameras import CameraTake
from sync.recording.listening import headset_sound, take_sound
from sync.recording.session import Headset, Session


@dataclass(frozen=True, slots=True)
class Compared:
    """What motion, sound and clocks say of one take, on take time."""

    take: CameraTake
    headset: Headset
    epoch: int
    prior: Prior | None
    timestamps: ClockEvidence
    found: PairAlignment | None
    heard: Heard | None
    problem: str
    others: tuple[OtherHeadset, ...] = ()
    "What came of the other headsets, where there are several."

    @property
    def rank(self) -> tuple[int, float]:
        """How well it fits: the larger the better."""
        found = self.found
        if found is not None and found.clock_map is not None:
            return 2 + (found.verdict.status == "aligned"), found.coarse.rho
        return int(self.heard is not None and self.heard.is_usable), 0.0


def compare(session: Session, take: CameraTake) -> Compared | None:
    """Compare a take with the headset that it rides with: of several, the one whose motion it shares."""
    found = [c for c in (compare_with(headset, take) for headset in session.headsets) if c is not None]
    if not found:
        return None
    best = max(found, key=lambda compared: compared.rank)  # of equals the first
    others = tuple(_said_of_other(other) for other in found if other is not best)
    return replace(best, others=others)


def _said_of_other(other: Compared) -> OtherHeadset:
    verdict = other.found.verdict if other.found is not None else Verdict(NOT_ALIGNED, (other.problem,))
    return OtherHeadset(f"{other.headset.name}/gyroscope", verdict.status, tuple(verdict.reasons))


def compare_with(headset: Headset, take: CameraTake) -> Compared | None:
    """Motion first; sound when motion is missing, too little or doubted; clocks when there is nothing else."""
    epoch = headset.epoch
    if epoch is None:
        return None
    host = headset.host
    prior, timestamps = prior_of(
        list(take.starts) if host else [], ticks_of_host=host.to_ticks if host else None, epoch_ticks=epoch
    )
    if host is not None:
        known = HostClockEvidence(host.probes, host.bound_ns / 1e6, len(host.lines))
        timestamps = replace(timestamps, host_clock=known)
    found, problem = _by_motion(headset, take, prior)
    doubted = found is None or found.verdict.status != "aligned"
    heard = _listen(headset, take, epoch) if doubted else None
    problem = problem or "; ".join(found.verdict.reasons if found else ())
    if found is not None:
        found = with_restarts(with_sound(found, heard), host.restarts if host else 0)
    return Compared(take, headset, epoch, prior, timestamps, found, heard, problem)


def _by_motion(headset: Headset, take: CameraTake, prior: Prior | None) -> tuple[PairAlignment | None, str]:
    """The gyroscopes' answer, or why there is none."""
    if headset.gyro is None:
        return (
            None,
            "the headset's gyroscope was not recorded, nor its head pose: there is no motion to compare",
        )
    if take.gyro is None:
        return None, take.problem
    told = headset.about.get("gyroscope_unit") or "auto"
    unit = "rad_per_s" if headset.gyro.source == HEAD_POSE else told
    try:
        return align_pair(headset.gyro, take.gyro, prior=prior, unit=unit), ""
    except (BadArrays, TooShort) as error:
        return None, str(error)


def _listen(headset: Headset, take: CameraTake, epoch: int) -> Heard | None:
    """Compare the sounds, where both were recorded; None where not."""
    if not headset.has(MICROPHONE):
        return None
    camera = take_sound([(file.path, file.start_s) for file in take.readable])
    if camera is None:
        return None
    own = headset_sound(headset.recording[f"{headset.name}/{MICROPHONE}"], epoch)
    return align_sounds(own, camera) if own is not None else None
