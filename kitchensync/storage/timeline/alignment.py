"""Types for the alignment of a video or headset by `sync`: the only module that knows the keys of alignment/1. Pure.

`as_object` of each type returns the object for the file; `from_object` reads it, with None for keys that an earlier
version did not write.
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
"""Error part of the frames of the reference camera."""
MEASURED = "measured"
"""Source of an error part measured by `sync-camera`; `default` is assumed."""

Triple = tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class ErrorPart:
    """A systematic error that correlation cannot detect: delay and its standard deviation, ms."""

    part: str
    value: float
    sigma: float
    source: str


@dataclass(frozen=True, slots=True)
class AlignmentErrors:
    """Error bounds of the map, ms; triples are [start, middle, end] of the overlap."""

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
        """Return the object under `sigma`."""
        return {
            "stat_ms": list(self.stat_ms),
            "model_ms": list(self.model_ms),
            "bound95_ms": list(self.bound95_ms),
            "systematic_ms": [asdict(part) for part in self.systematic],
            "total_ms": self.total_ms,
        }

    @classmethod
    def from_object(cls, content: Mapping[str, Any]) -> AlignmentErrors:
        """Read the object. Raises KeyError, TypeError, ValueError."""
        parts = [
            ErrorPart(str(part["part"]), float(part["value"]), float(part["sigma"]), str(part["source"]))
            for part in content.get("systematic_ms") or []
        ]
        stat, model, bound = (_numbers(content.get(key)) for key in ("stat_ms", "model_ms", "bound95_ms"))
        (total,) = _numbers([content.get("total_ms")])
        return cls(stat, model, bound, tuple(parts), total)


@dataclass(frozen=True, slots=True)
class OtherHeadset:
    """Result of the comparison of a camera with another headset."""

    master: str
    status: str
    reasons: tuple[str, ...]

    @property
    def headset(self) -> str:
        """Name of the device."""
        return self.master.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Input:
    """An input file or stream."""

    path: str
    sha256: str | None


@dataclass(frozen=True, slots=True)
class ChapterPlace:
    """Start of this file in a clip of several files, seconds of clip time."""

    start_s: float
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """An alignment. Without a map it is not aligned; `problem` is why its file cannot be read."""

    status: str = NOT_ALIGNED
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    source: str = ""
    "The video, such as `gopro/GX010001.MP4`, or the other headset."
    master: str = ""
    "Clock of the map: name of a headset or its gyroscope; without a headset a video of the reference camera."
    master_clock: str = HEADSET_CLOCK
    source_clock: str = CAMERA_CLOCK
    epoch_ticks: int | None = None
    source_epoch_ticks: int | None = None
    "For another headset: the tick at which its seconds begin."
    errors: AlignmentErrors | None = None
    gyro: GyroEvidence | None = None
    sound: SoundEvidence | None = None
    clocks: ClockEvidence | None = None
    headset_gyro: GyroReport | None = None
    camera_gyro: Mapping[str, Any] | None = None
    thresholds: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[Input, ...] = ()
    version: str = ""
    samples: tuple[tuple[float, int], ...] = ()
    "The map at sample media times: (s, ticks)."
    clock_map: ClockMap | None = None
    other_headsets: tuple[OtherHeadset, ...] = ()
    chapter: ChapterPlace | None = None
    clues: tuple[Clue, ...] = ()
    "Clues in the video's files about the offset between telemetry and frames."
    problem: str = ""

    @property
    def headset(self) -> str:
        """Name of the headset of the map, if the file has it."""
        return (self.master or "hololens").partition("/")[0]

    @property
    def picture_late_s(self) -> float:
        """Measured delay of frames after their timestamps, seconds; 0 if not measured."""
        parts = self.errors.systematic if self.errors is not None else ()
        own = (part for part in parts if part.source == MEASURED and part.part != REFERENCE_PART)
        return next((float(part.value) / 1e3 for part in own), 0.0)

    @property
    def telemetry_late_s(self) -> float:
        """Delay of a video's telemetry relative to its frames, seconds."""
        return float((self.camera_gyro or {}).get("late_s") or 0.0)

    @property
    def is_placed(self) -> bool:
        """Whether its map may be used: status aligned or check."""
        return self.status in (ALIGNED, CHECK)

    @property
    def bound95_ms(self) -> float | None:
        """The largest 95 % bound; None if not aligned or not known."""
        return self.errors.largest_bound_ms if self.errors is not None and self.is_placed else None

    @property
    def total_ms(self) -> float | None:
        """One sigma with the systematic parts; None if not aligned or not known."""
        return self.errors.total_ms if self.errors is not None and self.is_placed else None

    @property
    def bounds_in_words(self) -> str:
        """The bounds of motion and frames as text, and whether the latency is assumed; empty if not aligned."""
        bounds, parts = [], self.errors.systematic if self.errors is not None else ()
        if self.bound95_ms is not None:
            bounds.append(f"gyroscopes within {self.bound95_ms:.2f} ms")
        if self.total_ms is not None and parts:
            is_measured = all(part.source == MEASURED for part in parts)
            how = "measured" if is_measured else "assumed; `kitchensync sync-camera` measures it"
            bounds.append(f"pictures within {2 * self.total_ms:.0f} ms (95 %, camera latency {how})")
        return "; ".join(bounds)

    def as_object(self) -> dict[str, Any]:
        """Return the object for the file; figures may be NumPy types."""
        named = {"source": self.source, "master": self.master} if self.source else {}
        epochs = {"epoch_hl2_qpc": self.epoch_ticks, "epoch_source_qpc": self.source_epoch_ticks}
        placed: dict[str, Any] = {"map": self.clock_map.as_object()} if self.clock_map is not None else {}
        if self.other_headsets:
            placed["other_headsets"] = [
                asdict(other) | {"reasons": list(other.reasons)} for other in self.other_headsets
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
            "inputs": [asdict(file) for file in self.inputs],
            "version": self.version,
            "samples": [
                [t_s, (ticks / TICKS_PER_S if self.is_on_camera else ticks)] for t_s, ticks in self.samples
            ],
            **placed,
        }

    @property
    def is_on_camera(self) -> bool:
        """Whether a camera's media time is the master clock, because no headset was recorded."""
        return self.master_clock == REFERENCE_CLOCK

    @property
    def compared_with(self) -> str:
        """What the video was compared with: `reference` or `headset`."""
        return "reference" if self.is_on_camera else "headset"

    @classmethod
    def from_object(cls, content: Mapping[str, Any]) -> Alignment:
        """Read an alignment object. Raises KeyError, TypeError, ValueError, AttributeError, OutsideMap."""
        status, evidence, streams = (
            str(content["status"]),
            content.get("evidence") or {},
            content.get("streams") or {},
        )
        is_placed = bool(content.get("map")) and status in (ALIGNED, CHECK)
        epoch, source_epoch = content.get("epoch_hl2_qpc"), content.get("epoch_source_qpc")
        take, clock = content.get("take"), str(content.get("master_clock") or HEADSET_CLOCK)
        master_gyro, source_gyro = GYROS_ON_CAMERA if clock == REFERENCE_CLOCK else GYROS
        ticks_each = TICKS_PER_S if clock == REFERENCE_CLOCK else 1
        return cls(
            status=status,
            reasons=_texts(content, "reasons"),
            warnings=_texts(content, "warnings"),
            source=str(content.get("source") or ""),
            master=str(content.get("master") or ""),
            master_clock=clock,
            source_clock=str(content.get("source_clock") or CAMERA_CLOCK),
            epoch_ticks=None if epoch is None else int(epoch),
            source_epoch_ticks=None if source_epoch is None else int(source_epoch),
            errors=_read(AlignmentErrors, content.get("sigma")),
            gyro=_read(GyroEvidence, evidence.get("gyro")),
            sound=_read(SoundEvidence, evidence.get("audio")),
            clocks=_read(ClockEvidence, evidence.get("timestamps")),
            clues=tuple(Clue(row["name"], row["says"], row["agrees"]) for row in evidence.get("film") or []),
            headset_gyro=_read(GyroReport, streams.get(master_gyro)),
            camera_gyro=None if (gyro_object := streams.get(source_gyro)) is None else {**gyro_object},
            thresholds=dict(content.get("thresholds") or {}),
            inputs=tuple(
                Input(str(row.get("path", "")), row.get("sha256")) for row in content.get("inputs") or []
            ),
            version=str(content.get("version") or ""),
            samples=tuple((float(t_s), round(at * ticks_each)) for t_s, at in content.get("samples") or []),
            clock_map=ClockMap.from_object(dict(content)) if is_placed else None,
            other_headsets=tuple(
                OtherHeadset(str(row["master"]), str(row["status"]), _texts(row, "reasons"))
                for row in content.get("other_headsets") or []
            ),
            chapter=ChapterPlace(take["start_s"], tuple(take["files"])) if take else None,
        )


def _object(part: Any) -> dict[str, Any] | None:
    return None if part is None else part.as_object()


Part = TypeVar("Part", AlignmentErrors, GyroEvidence, SoundEvidence, ClockEvidence, GyroReport)


def _read(kind: type[Part], content: Mapping[str, Any] | None) -> Part | None:
    return kind.from_object(content) if content else None


def _numbers(values: Any) -> Triple:
    return tuple(None if value is None else float(value) for value in values or [])


def _texts(content: Mapping[str, Any], key: str) -> tuple[str, ...]:
    return tuple(str(text) for text in content.get(key) or [])
