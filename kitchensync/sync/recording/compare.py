"""Compare one clip of a camera with the headset by motion, sound and clocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt
from scipy import signal

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.files.film_sound import sound_blocks
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.sensors.hololens.catalogue import MICROPHONE
from kitchensync.sensors.hololens.streams import microphone
from kitchensync.storage.errors import pass_on_trouble
from kitchensync.storage.recording import StoredStream
from kitchensync.storage.timeline.alignment import NOT_ALIGNED, OtherHeadset
from kitchensync.storage.timeline.alignment_evidence import ClockEvidence, HostClockEvidence
from kitchensync.storage.timeline.stamps import TICKS_PER_S, repair_batches
from kitchensync.sync.align.gyro import align_pair
from kitchensync.sync.align.headset_gyro import HEAD_POSE
from kitchensync.sync.align.pair_alignment import RESTARTED, PairAlignment, doubt_by_sound, doubted
from kitchensync.sync.align.prior import Prior, prior_of
from kitchensync.sync.align.sound import SOUND_HZ, Heard, Sound, align_sounds
from kitchensync.sync.align.verdict import Verdict
from kitchensync.sync.errors import BadArrays, TooShort
from kitchensync.sync.recording.clips_to_align import CameraClip
from kitchensync.sync.recording.sync_session import Headset, Master, Reference, Session

Floats = npt.NDArray[np.floating]
LONGEST_HOLE_PACKETS = 50_000  # 18 minutes of AAC: a wrong stamp must not fill the memory with silence


def headset_sound(stream: StoredStream, epoch_ticks: int) -> Sound | None:
    """Return the AAC sound with repaired stamps, seconds since `epoch_ticks`; lost packets become silence."""
    codec: Any = av.CodecContext.create("aac", "r")
    ticks = stream.index["device_ticks"].astype(np.int64)
    pieces: list[Floats] = []
    firsts: list[int] = []
    stamps: list[int] = []
    done, rate = 0, microphone.RATE_HZ
    for row, payload in stream.packets():
        try:
            frame = microphone.decode(payload)
            decoded = microphone.decode_aac(codec, payload)
        except (SensorError, av.FFmpegError):
            continue
        rate = frame.rate_hz
        if firsts:
            due = (int(ticks[row]) - stamps[-1]) / TICKS_PER_S * rate / frame.samples
            hole = min(max(round(due) - 1, 0), LONGEST_HOLE_PACKETS) * frame.samples
            if hole:
                pieces.append(np.zeros(hole, np.float32))
                done += hole
        firsts.append(done)
        stamps.append(int(ticks[row]))
        for block in decoded or [np.zeros((1, frame.samples), np.float32)]:
            pieces.append(_mono(block))
            done += len(pieces[-1])
    if len(firsts) < 2:
        return None
    vinyl = np.round(np.array(firsts) * (1e9 / rate)).astype(np.int64)
    line = repair_batches(
        vinyl, np.array(stamps, dtype=np.int64), np.array(firsts), samples=done, step_ns=1e9 / rate
    ).lines[0]
    start_s = (int(line.ticks(np.zeros(1, np.int64))[0]) - epoch_ticks) / TICKS_PER_S
    samples, hz = _thin(np.concatenate(pieces), rate)
    return Sound(start_s, samples, hz / (line.ticks_per_ns * 1e9 / TICKS_PER_S))


def camera_sound(path: Path) -> Sound | None:
    """Return the sound of a camera file in media seconds from its first picture, according to the edit list."""
    try:
        blocks = [
            (block.t_s, _mono(block.samples), block.rate_hz) for block in sound_blocks(open_media(path))
        ]
    except (SensorError, OSError, ValueError) as error:
        pass_on_trouble(error)
        return None
    if not blocks:
        return None
    start_s, rate = min(at_s for at_s, *_ in blocks), blocks[0][2]
    samples, hz = _thin(_laid_out([(round((at_s - start_s) * rate), part) for at_s, part, _ in blocks]), rate)
    return Sound(start_s, samples, hz)


def _laid_out(parts: list[tuple[int, Floats]]) -> Floats:
    """Join pieces of sound, (place, samples) each, with silence between them."""
    most = sum(len(part) for _, part in parts) + LONGEST_HOLE_PACKETS * microphone.AAC_SAMPLES
    parts = [(at, part) for at, part in parts if at + len(part) <= most]
    whole = np.zeros(max(at + len(part) for at, part in parts), np.float32)
    for at, part in parts:
        whole[at : at + len(part)] = part
    return whole


def take_sound(chapters: list[tuple[Path, float]]) -> Sound | None:
    """Return the sound of all chapters, (file, clip time of its first picture) each; missing ones are silent."""
    read = [(camera_sound(path), start_s) for path, start_s in chapters]
    sounds = [replace(sound, start_s=sound.start_s + start_s) for sound, start_s in read if sound is not None]
    if len(sounds) < 2:
        return sounds[0] if sounds else None
    first, hz = sounds[0].start_s, sounds[0].hz
    return Sound(first, _laid_out([(round((s.start_s - first) * hz), s.samples) for s in sounds]), hz)


def _mono(block: npt.NDArray[Any]) -> Floats:
    """Return the mean of the channels (channels, n), float32."""
    mixed: Floats = np.atleast_2d(block).astype(np.float32).mean(axis=0)
    return mixed


def _thin(samples: Floats, rate: int) -> tuple[Floats, float]:
    """Downsample to about 12 kHz in blocks of a minute."""
    factor = max(1, rate // SOUND_HZ)
    if factor == 1:
        return samples, float(rate)
    taps = signal.firwin(16 * factor + 1, 0.9 / factor)
    half, step = len(taps) // 2, 60 * SOUND_HZ * factor
    padded = np.concatenate([np.zeros(half, np.float32), samples, np.zeros(half, np.float32)])
    pieces = []
    for first in range(0, len(samples), step):
        piece = padded[first : min(first + step, len(samples)) + 2 * half]
        thinned = signal.upfirdn(taps, piece, 1, 1)[2 * half : len(piece)][::factor]
        pieces.append(thinned.astype(np.float32))
    return np.concatenate(pieces), rate / factor


@dataclass(frozen=True, slots=True)
class Compared:
    """Results of motion, sound and clocks for one clip, on clip time."""

    clip: CameraClip
    master: Master
    epoch: int
    prior: Prior | None
    timestamps: ClockEvidence
    pair: PairAlignment | None
    heard: Heard | None
    problem: str
    others: tuple[OtherHeadset, ...] = ()  # results of the other headsets

    @property
    def rank(self) -> tuple[int, float]:
        """Quality of the match; larger is better."""
        pair = self.pair
        if pair is not None and pair.clock_map is not None:
            return 2 + (pair.verdict.status == "aligned"), pair.coarse.rho
        return int(self.heard is not None and self.heard.is_usable), 0.0


def compare(session: Session, clip: CameraClip) -> Compared | None:
    """Compare a clip with the best matching headset, or without any with the best matching reference clip."""
    comparisons = [c for c in (_compare_with(master, clip) for master in session.masters) if c is not None]
    if not comparisons:
        return None
    best = max(comparisons, key=lambda compared: compared.rank)  # the first of equal ones
    others = []
    for other in comparisons:
        if other is not best:
            refused = Verdict(NOT_ALIGNED, (other.problem,))
            verdict = other.pair.verdict if other.pair is not None else refused
            others.append(OtherHeadset(other.master.motion, verdict.status, tuple(verdict.reasons)))
    return replace(best, others=tuple(others))


def _compare_with(master: Master, clip: CameraClip) -> Compared | None:
    """Compare motion; sound if motion is missing, too little or doubtful; and clocks."""
    epoch = master.epoch
    if epoch is None:
        return None
    host = master.host
    prior, timestamps = prior_of(
        list(clip.starts) if host else [], ticks_of_host=host.to_ticks if host else None, epoch_ticks=epoch
    )
    if host is not None:
        host_clock = HostClockEvidence(host.probes, host.bound_ns / 1e6, len(host.lines))
        timestamps = replace(timestamps, host_clock=host_clock)
    pair, problem = _by_motion(master, clip, prior)
    is_doubtful = pair is None or pair.verdict.status != "aligned"
    heard = _listen(master, clip, epoch) if is_doubtful else None
    problem = problem or "; ".join(pair.verdict.reasons if pair else ())
    if pair is not None:
        doubts = [*clip.doubts]
        if isinstance(master, Reference):  # also a video, whose rates may not match its own pictures
            loose = [file.path.name for file in master.clip.readable if file.is_loose]
            missing = (f"how much is missing before {name} is not known" for name in loose)
            doubts[:0] = [f"{master.name}: {doubt}" for doubt in (*master.clip.doubts, *missing)]
        restarted = RESTARTED if host and host.restarts else ""
        pair = doubted(pair, doubt_by_sound(pair, heard), restarted, "; ".join(doubts))
    return Compared(clip, master, epoch, prior, timestamps, pair, heard, problem)


def _by_motion(master: Master, clip: CameraClip, prior: Prior | None) -> tuple[PairAlignment | None, str]:
    """Return the alignment by gyroscopes, or None and the reason."""
    if master.gyro is None:
        why = "the headset's gyroscope was not recorded, nor its head pose: there is no motion to compare"
        return None, why
    if clip.gyro is None:
        return None, clip.problem
    unit = "rad_per_s"
    if isinstance(master, Headset) and master.gyro.source != HEAD_POSE:
        unit = master.recording.manifest["devices"][master.name].get("gyroscope_unit") or "auto"
    try:
        return align_pair(master.gyro, clip.gyro, prior=prior, unit=unit), ""
    except (BadArrays, TooShort) as error:
        return None, str(error)


def _listen(master: Master, clip: CameraClip, epoch: int) -> Heard | None:
    """Compare the sounds if both were recorded, else return None."""
    if isinstance(master, Headset) and not master.has(MICROPHONE):
        return None
    camera = _sound_of(clip)
    if camera is None:
        return None
    if isinstance(master, Reference):
        own = _sound_of(master.clip)
    else:
        own = headset_sound(master.recording[f"{master.name}/{MICROPHONE}"], epoch)
    return align_sounds(own, camera) if own is not None else None


def _sound_of(clip: CameraClip) -> Sound | None:
    return take_sound([(file.path, file.start_s) for file in clip.readable])
