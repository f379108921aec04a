"""What `sync` found of one film or headset, as types: the one place that knows the keys of schema alignment/1. Pure.

`as_object` of each type gives what stands in the file; `from_object` reads it back, and takes what an earlier version
left out as None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, TypeVar

from kitchensync.sensors.gopro.files.clue import Clue
from kitchensync.storage.timeline.alignment_evidence import (
    ClockEvidence,
    GyroEvidence,
    GyroReport,
    SoundEvidence,
)
from kitchensync.storage.timeline.clock_map import REFERENCE_CLOCK, TICKS_PER_S, ClockMap

SCHEMA = "alignment/1"
HEADSET_CLOCK, CAMERA_CLOCK = "hl2_qpc_100ns", "gopro_media_s"
ALIGNED: Final = "aligned"
CHECK: Final = "check"
NOT_ALIGNED: Final = "not_aligned"
UNREADABLE: Final = "unreadable"
GYROS, GYROS_ON_CAMERA = ("hl2_gyro", "gopro_gyro"), ("reference_gyro", "film_gyro")

REFERENCE_PART = "reference_gyro_to_frame"
"""Error part of the pictures of the camera that others are put on."""
MEASURED = "measured"
"""Source of an error part that `sync-camera` measured; `default` is assumed."""

Said = Mapping[str, Any]
Triple = tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class ErrorPart:
    """An error that no correlation can see: so much later, ms, give or take `sigma`."""

    part: str
    value: float
    sigma: float
    source: str


@dataclass(frozen=True, slots=True)
class AlignmentErrors:
    """How far the map may be off, ms; triples are [start, middle, end] of the overlap."""

    stat_ms: Triple = ()
    model_ms: Triple = ()
    bound95_ms: Triple = ()
    systematic: tuple[ErrorPart, ...] = ()
    total_ms: float | None = None

    @property
    def largest_bound_ms(self) -> float | None:
        """The largest 95 % bound."""
        return max((bound for bound in self.bound95_ms if bound is not None), default=None)

    def as_object(self) -> dict[str, Any]:
        """Return what stands in the file under `sigma`."""
        return {
            "stat_ms": list(self.stat_ms),
            "model_ms": list(self.model_ms),
            "bound95_ms": list(self.bound95_ms),
            "systematic_ms": [asdict(part) for part in self.systematic],
            "total_ms": self.total_ms,
        }

    @classmethod
    def from_object(cls, said: Said) -> AlignmentErrors:
        """Read it back. Raises KeyError, TypeError, ValueError."""
        parts = [
            ErrorPart(str(one["part"]), float(one["value"]), float(one["sigma"]), str(one["source"]))
            for one in said.get("systematic_ms") or []
        ]
        stat, model, bound = (_numbers(said.get(key)) for key in ("stat_ms", "model_ms", "bound95_ms"))
        (total,) = _numbers([said.get("total_ms")])
        return cls(stat, model, bound, tuple(parts), total)


@dataclass(frozen=True, slots=True)
class OtherHeadset:
    """What came of another headset that a camera was compared with."""

    master: str
    status: str
    reasons: tuple[str, ...]

    @property
    def headset(self) -> str:
        """Name of the device."""
        return self.master.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Input:
    """A file or stream that the answer rests on."""

    path: str
    sha256: str | None


@dataclass(frozen=True, slots=True)
class ChapterPlace:
    """Where in a clip of several files this one begins, s of clip time."""

    start_s: float
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """One alignment object. Without a map nothing is aligned; `problem` says why a file of it cannot be read."""

    status: str = NOT_ALIGNED
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    source: str = ""
    "The film, as `gopro/GX010001.MP4`, or the other headset."
    master: str = ""
    "Whose ticks the map gives: a headset's name, or its gyroscope's; without one a film of the reference camera."
    master_clock: str = HEADSET_CLOCK
    source_clock: str = CAMERA_CLOCK
    epoch_ticks: int | None = None
    source_epoch_ticks: int | None = None
    "Of another headset: the tick from which its seconds count."
    errors: AlignmentErrors | None = None
    gyro: GyroEvidence | None = None
    sound: SoundEvidence | None = None
    clocks: ClockEvidence | None = None
    headset_gyro: GyroReport | None = None
    camera_gyro: Said | None = None
    thresholds: Said = field(default_factory=dict)
    inputs: tuple[Input, ...] = ()
    version: str = ""
    samples: tuple[tuple[float, int], ...] = ()
    "The map at some media times: (s, ticks)."
    clock_map: ClockMap | None = None
    other_headsets: tuple[OtherHeadset, ...] = ()
    chapter: ChapterPlace | None = None
    clues: tuple[Clue, ...] = ()
    "What a film's files say of where its telemetry lies on its pictures."
    problem: str = ""

    @property
    def headset(self) -> str:
        """Name of the device whose ticks the map gives, as far as the file says."""
        return (self.master or "hololens").partition("/")[0]

    @property
    def picture_late_s(self) -> float:
        """How much later than their stamps pictures were taken, as measured; 0 where nobody did."""
        parts = self.errors.systematic if self.errors is not None else ()
        own = (part for part in parts if part.source == MEASURED and part.part != REFERENCE_PART)
        return next((float(part.value) / 1e3 for part in own), 0.0)

    @property
    def telemetry_late_s(self) -> float:
        """By how much a film's telemetry, read alone, lies later than on its pictures."""
        return float((self.camera_gyro or {}).get("late_s") or 0.0)

    @property
    def is_placed(self) -> bool:
        """Return whether its map may be used: aligned, or nearly so."""
        return self.status in (ALIGNED, CHECK)

    @property
    def bound95_ms(self) -> float | None:
        """The largest 95 % bound; None where nothing is aligned or nobody says."""
        return self.errors.largest_bound_ms if self.errors is not None and self.is_placed else None

    @property
    def total_ms(self) -> float | None:
        """One sigma with the systematic parts; None where nothing is aligned or nobody says."""
        return self.errors.total_ms if self.errors is not None and self.is_placed else None

    @property
    def bounds_in_words(self) -> str:
        """How far motion and pictures may be off, with what is only assumed; nothing where nothing is aligned."""
        said, parts = [], self.errors.systematic if self.errors is not None else ()
        if self.bound95_ms is not None:
            said.append(f"gyroscopes within {self.bound95_ms:.2f} ms")
        if self.total_ms is not None and parts:
            is_measured = all(part.source == MEASURED for part in parts)
            how = "measured" if is_measured else "assumed; `kitchensync sync-camera` measures it"
            said.append(f"pictures within {2 * self.total_ms:.0f} ms (95 %, camera latency {how})")
        return "; ".join(said)

    def as_object(self) -> dict[str, Any]:
        """Return what stands in the file; figures may still be NumPy's."""
        named = {"source": self.source, "master": self.master} if self.source else {}
        epochs = {"epoch_hl2_qpc": self.epoch_ticks, "epoch_source_qpc": self.source_epoch_ticks}
        placed: dict[str, Any] = {"map": self.clock_map.as_object()} if self.clock_map is not None else {}
        if self.other_headsets:
            placed["other_headsets"] = [
                asdict(one) | {"reasons": list(one.reasons)} for one in self.other_headsets
            ]
        if self.chapter is not None:
            placed["take"] = {"start_s": self.chapter.start_s, "files": list(self.chapter.files)}
        streams = {}
        if self.headset_gyro is not None:
            master, source = GYROS_ON_CAMERA if self.is_on_camera else GYROS
            streams = {master: self.headset_gyro.as_object(), source: dict(self.camera_gyro or {})}
        return {
            **named,
            "schema": SCHEMA,
            "status": self.status,
            "reasons": list(self.reasons),
            "warnings": list(self.warnings),
            "master_clock": self.master_clock,
            "source_clock": self.source_clock,
            **{key: ticks for key, ticks in epochs.items() if ticks is not None},
            "sigma": _object(self.errors),
            "evidence": {
                "gyro": _object(self.gyro),
                "audio": _object(self.sound),
                "timestamps": _object(self.clocks),
                **({"film": [asdict(clue) for clue in self.clues]} if self.clues else {}),
            },
            "streams": streams,
            "thresholds": dict(self.thresholds),
            "inputs": [asdict(one) for one in self.inputs],
            "version": self.version,
            "samples": [
                [t_s, (ticks / TICKS_PER_S if self.is_on_camera else ticks)] for t_s, ticks in self.samples
            ],
            **placed,
        }

    @property
    def is_on_camera(self) -> bool:
        """Return whether a camera's media time is the master clock: no headset was recorded."""
        return self.master_clock == REFERENCE_CLOCK

    @property
    def compared_with(self) -> str:
        """What the film was compared with, in a word."""
        return "reference" if self.is_on_camera else "headset"

    @classmethod
    def from_object(cls, said: Said) -> Alignment:
        """Read an alignment object. Raises KeyError, TypeError, ValueError, AttributeError, OutsideMap."""
        status, evidence, streams = str(said["status"]), said.get("evidence") or {}, said.get("streams") or {}
        is_placed = bool(said.get("map")) and status in (ALIGNED, CHECK)
        epoch, source_epoch = said.get("epoch_hl2_qpc"), said.get("epoch_source_qpc")
        take, clock = said.get("take"), str(said.get("master_clock") or HEADSET_CLOCK)
        master_gyro, source_gyro = GYROS_ON_CAMERA if clock == REFERENCE_CLOCK else GYROS
        ticks_each = TICKS_PER_S if clock == REFERENCE_CLOCK else 1
        return cls(
            status=status,
            reasons=_texts(said, "reasons"),
            warnings=_texts(said, "warnings"),
            source=str(said.get("source") or ""),
            master=str(said.get("master") or ""),
            master_clock=clock,
            source_clock=str(said.get("source_clock") or CAMERA_CLOCK),
            epoch_ticks=None if epoch is None else int(epoch),
            source_epoch_ticks=None if source_epoch is None else int(source_epoch),
            errors=_read(AlignmentErrors, said.get("sigma")),
            gyro=_read(GyroEvidence, evidence.get("gyro")),
            sound=_read(SoundEvidence, evidence.get("audio")),
            clocks=_read(ClockEvidence, evidence.get("timestamps")),
            clues=tuple(Clue(one["name"], one["says"], one["agrees"]) for one in evidence.get("film") or []),
            headset_gyro=_read(GyroReport, streams.get(master_gyro)),
            camera_gyro=None if (its := streams.get(source_gyro)) is None else {**its},
            thresholds=dict(said.get("thresholds") or {}),
            inputs=tuple(
                Input(str(one.get("path", "")), one.get("sha256")) for one in said.get("inputs") or []
            ),
            version=str(said.get("version") or ""),
            samples=tuple((float(t_s), round(at * ticks_each)) for t_s, at in said.get("samples") or []),
            clock_map=ClockMap.from_object(dict(said)) if is_placed else None,
            other_headsets=tuple(
                OtherHeadset(str(one["master"]), str(one["status"]), _texts(one, "reasons"))
                for one in said.get("other_headsets") or []
            ),
            chapter=ChapterPlace(take["start_s"], tuple(take["files"])) if take else None,
        )


def _object(part: Any) -> dict[str, Any] | None:
    return None if part is None else part.as_object()


Part = TypeVar("Part", AlignmentErrors, GyroEvidence, SoundEvidence, ClockEvidence, GyroReport)


def _read(kind: type[Part], said: Said | None) -> Part | None:
    return kind.from_object(said) if said else None


def _numbers(said: Any) -> Triple:
    return tuple(None if one is None else float(one) for one in said or [])


def _texts(said: Said, key: str) -> tuple[str, ...]:
    return tuple(str(text) for text in said.get(key) or [])
