"""The evidence of an alignment: results of gyroscopes, sounds and clocks, in numbers. Pure.

Numbers are as in the file: None if they were not finite, or an earlier version did not write them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

_TYPES: dict[str, tuple[type, ...]] = {
    "float": (float, int), "int": (int,), "bool": (bool,), "str": (str,), "list": (list,), "dict": (dict,)
}  # fmt: skip
"""Types of JSON by the first word of a field's type."""


class Figures:
    """Figures stored in the file under their field names."""

    def as_object(self) -> dict[str, Any]:
        """Return the object for the file."""
        return {figure.name: getattr(self, figure.name) for figure in fields(self)}  # type: ignore[arg-type]

    @classmethod
    def from_object(cls, content: Mapping[str, Any]) -> Self:
        """Read them. Raises TypeError for a wrong type."""
        return cls(**cls.known(content))

    @classmethod
    def known(cls, content: Mapping[str, Any]) -> dict[str, Any]:
        """Return the figures of this class that an object has. Raises TypeError for a wrong type."""
        figures = {figure.name: content[figure.name] for figure in fields(cls) if figure.name in content}  # type: ignore[arg-type]
        for figure in fields(cls):  # type: ignore[arg-type]
            kind, _, may_be_none = str(figure.type).partition(" | ")
            value = figures.get(figure.name)
            if figure.name not in figures or (value is None and may_be_none):
                continue
            if type(value) not in _TYPES[kind.partition("[")[0]]:
                raise TypeError(f"{figure.name} is no {kind}")
        return figures


@dataclass(frozen=True)
class GyroFit(Figures):
    """The fine fit of two gyroscopes."""

    chi: float | None = None
    drift_ppm: float | None = None
    drift_sigma_ppm: float | None = None
    R: list[list[float]] | None = None
    "Rotation from the headset's axes to the camera's."
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
    """Results of the gyroscopes; `fit` is None if the search found no match."""

    search: GyroSearch
    windows_ok: int | None = None
    windows: int | None = None
    fit: GyroFit | None = None

    def as_object(self) -> dict[str, Any]:
        """Return the object under `evidence.gyro`."""
        counts = {"windows_ok": self.windows_ok, "windows": self.windows}
        return self.search.as_object() | counts | (self.fit.as_object() if self.fit is not None else {})

    @classmethod
    def from_object(cls, content: Mapping[str, Any]) -> GyroEvidence:
        """Read the object."""
        fit = GyroFit.from_object(content) if GyroFit.known(content) else None
        return cls(GyroSearch.from_object(content), content.get("windows_ok"), content.get("windows"), fit)


@dataclass(frozen=True)
class SoundEvidence(Figures):
    """Results of the sounds."""

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
    """Start of the video by one clock, seconds after the epoch."""

    source: str = ""
    prior_s: float | None = None
    sigma_s: float | None = None
    note: str = ""
    serves: bool = True


@dataclass(frozen=True)
class HostClockEvidence(Figures):
    """Quality of the headset's clock by its exchanges with the recording computer."""

    probes: int | None = None
    bound_ms: float | None = None
    stretches: int = 1


@dataclass(frozen=True)
class BridgeEvidence(Figures):
    """Relation of two headsets' clocks through the recording computer; pairs are [source, master]."""

    bound_ms: float | None = None
    probes: list[int] = field(default_factory=list)
    stretches: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class ClockEvidence:
    """Results of clocks; `statements` is None if none were read, `bridge` is for two headsets."""

    prior_s: float | None = None
    sigma_s: float | None = None
    source: str = "none"
    tmcd_reading: str | None = None
    statements: tuple[ClockStatement, ...] | None = None
    host_clock: HostClockEvidence | None = None
    bridge: BridgeEvidence | None = None

    def as_object(self) -> dict[str, Any]:
        """Return the object under `evidence.timestamps`."""
        if self.bridge is not None:
            return {"host_clocks": self.bridge.as_object()}
        content: dict[str, Any] = {"prior_s": self.prior_s, "sigma_s": self.sigma_s, "source": self.source}
        if self.statements is not None:
            statements = [statement.as_object() for statement in self.statements]
            content |= {"tmcd_reading": self.tmcd_reading, "statements": statements}
        if self.host_clock is not None:
            content["host_clock"] = self.host_clock.as_object()
        return content

    @classmethod
    def from_object(cls, content: Mapping[str, Any]) -> ClockEvidence:
        """Read the object."""
        statements, host, bridge = (
            content.get("statements"),
            content.get("host_clock"),
            content.get("host_clocks"),
        )
        return cls(
            prior_s=content.get("prior_s"),
            sigma_s=content.get("sigma_s"),
            source=str(content.get("source", "none")),
            tmcd_reading=content.get("tmcd_reading"),
            statements=None if statements is None else tuple(map(ClockStatement.from_object, statements)),
            host_clock=HostClockEvidence.from_object(host) if host else None,
            bridge=BridgeEvidence.from_object(bridge) if bridge else None,
        )


@dataclass(frozen=True)
class GyroUnit(Figures):
    """The unit of the headset's gyroscope, as detected."""

    name: str = ""
    scale: float | None = None
    source: str = "not said"


@dataclass(frozen=True)
class GyroReport:
    """The reference gyroscope: results of its timestamp repair, and its unit."""

    repair: Mapping[str, Any]
    unit: GyroUnit | None = None

    @property
    def rate_hz(self) -> float | None:
        """Samples a second."""
        return self.repair.get("rate_hz")

    @property
    def jitter_ms(self) -> float | None:
        """Scatter of the timestamps."""
        return self.repair.get("jitter_ms")

    @property
    def lost(self) -> int | None:
        """Number of missing batches."""
        return self.repair.get("lost")

    def as_object(self) -> dict[str, Any]:
        """Return the object under `streams`."""
        return dict(self.repair) | ({"unit": self.unit.as_object()} if self.unit is not None else {})

    @classmethod
    def from_object(cls, content: Mapping[str, Any]) -> GyroReport:
        """Read the object."""
        unit = content.get("unit")
        return cls(
            {key: value for key, value in content.items() if key != "unit"},
            GyroUnit.from_object(unit) if unit else None,
        )
