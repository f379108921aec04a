"""What an alignment rests on: what the gyroscopes, the sounds and the clocks said, in numbers. Pure.

Numbers are as the file has them: None where they were not finite, or where an earlier version did not write them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

Said = Mapping[str, Any]
_TYPES: dict[str, tuple[type, ...]] = {
    "float": (float, int), "int": (int,), "bool": (bool,), "str": (str,), "list": (list,), "dict": (dict,)
}  # fmt: skip
"""Types of JSON by the first word of a field's type."""


class Figures:
    """Figures that stand in the file under their own names."""

    def as_object(self) -> dict[str, Any]:
        """Return what stands in the file."""
        return {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]

    @classmethod
    def from_object(cls, said: Said) -> Self:
        """Read them back. Raises TypeError where one has another type."""
        return cls(**cls.known(said))

    @classmethod
    def known(cls, said: Said) -> dict[str, Any]:
        """Return those of an object's figures that are of this kind. Raises TypeError where one has another type."""
        found = {one.name: said[one.name] for one in fields(cls) if one.name in said}  # type: ignore[arg-type]
        for one in fields(cls):  # type: ignore[arg-type]
            kind, _, may_be_none = str(one.type).partition(" | ")
            value = found.get(one.name)
            if one.name not in found or (value is None and may_be_none):
                continue
            if type(value) not in _TYPES[kind.partition("[")[0]]:
                raise TypeError(f"{one.name} is no {kind}")
        return found


@dataclass(frozen=True)
class GyroFit(Figures):
    """The fine fit of two gyroscopes."""

    chi: float | None = None
    drift_ppm: float | None = None
    drift_sigma_ppm: float | None = None
    R: list[list[float]] | None = None
    "Camera's axes from the headset's."
    rot_halves_deg: float | None = None
    rot_halves_sigma_deg: float | None = None
    step: dict[str, Any] | None = None
    jumps: list[dict[str, Any]] | None = None
    degree: int | None = None
    residual_rms_ms: float | None = None
    correlation: float | None = None
    cramer_rao_ms: float | None = None
    overlap_s: list[float] | None = None


@dataclass(frozen=True)
class GyroSearch(Figures):
    """The search over all lags."""

    rho: float | None = None
    rho2: float | None = None
    rival: float | None = None
    rival_distance_s: float | None = None
    z: float | None = None
    edge: bool | None = None
    magnitude_agrees: bool | None = None
    rate_grid: float | None = None


@dataclass(frozen=True)
class GyroEvidence:
    """What the gyroscopes said; `fit` is None where the search found nothing to fit."""

    search: GyroSearch
    windows_ok: int | None = None
    windows: int | None = None
    fit: GyroFit | None = None

    def as_object(self) -> dict[str, Any]:
        """Return what stands in the file under `evidence.gyro`."""
        counts = {"windows_ok": self.windows_ok, "windows": self.windows}
        return self.search.as_object() | counts | (self.fit.as_object() if self.fit is not None else {})

    @classmethod
    def from_object(cls, said: Said) -> GyroEvidence:
        """Read it back."""
        fit = GyroFit.from_object(said) if GyroFit.known(said) else None
        return cls(GyroSearch.from_object(said), said.get("windows_ok"), said.get("windows"), fit)


@dataclass(frozen=True)
class SoundEvidence(Figures):
    """What the sounds said."""

    usable: bool | None = None
    tau0_s: float | None = None
    z: float | None = None
    windows: int | None = None
    windows_ok: int | None = None
    inliers: float | None = None
    drift_ppm: float | None = None
    stat_ms: float | None = None
    systematic_ms: float | None = None


@dataclass(frozen=True)
class ClockStatement(Figures):
    """What one clock said of the film's start: so many seconds after the epoch."""

    source: str = ""
    prior_s: float | None = None
    sigma_s: float | None = None
    note: str = ""
    serves: bool = True


@dataclass(frozen=True)
class HostClockEvidence(Figures):
    """How well the headset's clock is known by its exchanges with the recording computer."""

    probes: int | None = None
    bound_ms: float | None = None
    stretches: int = 1


@dataclass(frozen=True)
class BridgeEvidence(Figures):
    """How well two headsets' clocks are related through the recording computer; pairs are [source, master]."""

    bound_ms: float | None = None
    probes: list[int] = field(default_factory=list)
    stretches: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class ClockEvidence:
    """What clocks said; `statements` is None where none were asked, `bridge` is for two headsets."""

    prior_s: float | None = None
    sigma_s: float | None = None
    source: str = "none"
    tmcd_reading: str | None = None
    statements: tuple[ClockStatement, ...] | None = None
    host_clock: HostClockEvidence | None = None
    bridge: BridgeEvidence | None = None

    def as_object(self) -> dict[str, Any]:
        """Return what stands in the file under `evidence.timestamps`."""
        if self.bridge is not None:
            return {"host_clocks": self.bridge.as_object()}
        said: dict[str, Any] = {"prior_s": self.prior_s, "sigma_s": self.sigma_s, "source": self.source}
        if self.statements is not None:
            told = [one.as_object() for one in self.statements]
            said |= {"tmcd_reading": self.tmcd_reading, "statements": told}
        if self.host_clock is not None:
            said["host_clock"] = self.host_clock.as_object()
        return said

    @classmethod
    def from_object(cls, said: Said) -> ClockEvidence:
        """Read it back."""
        told, host, bridge = said.get("statements"), said.get("host_clock"), said.get("host_clocks")
        return cls(
            prior_s=said.get("prior_s"),
            sigma_s=said.get("sigma_s"),
            source=str(said.get("source", "none")),
            tmcd_reading=said.get("tmcd_reading"),
            statements=None if told is None else tuple(map(ClockStatement.from_object, told)),
            host_clock=HostClockEvidence.from_object(host) if host else None,
            bridge=BridgeEvidence.from_object(bridge) if bridge else None,
        )


@dataclass(frozen=True)
class GyroUnit(Figures):
    """Which unit the headset's gyroscope was found to send."""

    name: str = ""
    scale: float | None = None
    source: str = "not said"


@dataclass(frozen=True)
class GyroReport:
    """The gyroscope that others are compared with, as it was read: what its stamp repair says, and its unit."""

    repair: Said
    unit: GyroUnit | None = None

    @property
    def rate_hz(self) -> float | None:
        """Samples a second."""
        return self.repair.get("rate_hz")

    @property
    def jitter_ms(self) -> float | None:
        """How far stamps scatter."""
        return self.repair.get("jitter_ms")

    @property
    def lost(self) -> int | None:
        """Batches that are missing."""
        return self.repair.get("lost")

    def as_object(self) -> dict[str, Any]:
        """Return what stands in the file under `streams`."""
        return dict(self.repair) | ({"unit": self.unit.as_object()} if self.unit is not None else {})

    @classmethod
    def from_object(cls, said: Said) -> GyroReport:
        """Read it back."""
        unit = said.get("unit")
        return cls(
            {key: value for key, value in said.items() if key != "unit"},
            GyroUnit.from_object(unit) if unit else None,
        )
