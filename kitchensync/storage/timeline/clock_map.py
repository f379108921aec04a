"""Clock maps: from one device's time to another's, int64 all the way.

`ticks = epoch_ticks + 1e7 (t + tau(t))`, `tau(t) = c0 + c1 (t - t_mid) + c2 (t - t_mid)^2 ...`, t in s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kitchensync.storage.errors import OutsideMap

Int64 = npt.NDArray[np.int64]
Floats = npt.NDArray[np.floating]

TICKS_PER_S = 10_000_000
MOST_TICKS = 1 << 62  # half the range of int64: an epoch plus the ticks of a recording cannot overflow
NEWTON_STEPS = 3  # there and back is then exact to far below 1 us
SAMPLE_ROWS = 31
REFERENCE_CLOCK = "reference_media_s"
"""The clock of a camera onto whose media time others are put: seconds in a file, 100 ns of it in a map."""


@dataclass(frozen=True, slots=True)
class ClockMap:
    """Media seconds to device ticks (100 ns).

    `coef` is tau0 in s, drift, quadratic ... around `t_mid_s`; `jumps` are (media s, size s): after that media time
    tau is larger by the size. The time of the jump itself belongs to what was before.
    """

    epoch_ticks: int
    t_mid_s: float
    coef: tuple[float, ...]
    valid_s: tuple[float, float]
    jumps: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        rate = 1.0 + (self.coef[1] if len(self.coef) > 1 else 0.0)
        if not 0.5 < rate < 2.0 or not all(math.isfinite(c) for c in self.coef):
            raise OutsideMap(rate)

    @property
    def breaks_s(self) -> Floats:
        """Media times of the jumps, rising."""
        return np.array([at for at, _ in self.jumps], dtype=np.float64)

    def _smooth_tau(self, t_s: Floats | float) -> Floats:
        return np.polynomial.polynomial.polyval(np.asarray(t_s, dtype=np.float64) - self.t_mid_s, self.coef)

    def _level(self, piece: npt.NDArray[np.intp]) -> Floats:
        """Sum of the jumps before each piece."""
        return np.concatenate([[0.0], np.cumsum([size for _, size in self.jumps])])[piece]

    def tau_s(self, t_s: Floats | float) -> Floats:
        """Offset tau(t) in seconds at media times `t_s`."""
        tau = self._smooth_tau(t_s)
        return tau + self._level(np.searchsorted(self.breaks_s, t_s, side="left")) if self.jumps else tau

    def rate(self, t_s: Floats | float) -> Floats:
        """Device seconds a media second, 1 + d tau/dt."""
        slope = np.polynomial.polynomial.polyder(np.array([*self.coef, 0.0]))
        return 1.0 + np.polynomial.polynomial.polyval(np.asarray(t_s, dtype=np.float64) - self.t_mid_s, slope)

    def to_ticks(self, t_s: Floats | float) -> Int64:
        """Device ticks (int64, nearest 100 ns) at media times `t_s` (s)."""
        media = np.asarray(t_s, dtype=np.float64)
        return self.epoch_ticks + np.rint((media + self.tau_s(media)) * TICKS_PER_S).astype(np.int64)

    def to_media(self, ticks: Int64 | int) -> Floats:
        """Media seconds at device `ticks` (int64), by Newton: the way back is good to far below 1 us.

        Ticks that a jump left out give the media time of the jump; where media time ran twice over the same ticks,
        the later piece answers.
        """
        since_s = (np.asarray(ticks, dtype=np.int64) - self.epoch_ticks).astype(np.float64) / TICKS_PER_S
        if not self.jumps:
            return self._solve(since_s)
        breaks = self.breaks_s
        begins = breaks + self._smooth_tau(breaks) + self._level(np.arange(1, len(breaks) + 1))
        piece = np.searchsorted(np.maximum.accumulate(begins), since_s, side="right")
        media: Floats = np.minimum(
            self._solve(since_s - self._level(piece)), np.append(breaks, np.inf)[piece]
        )
        return media

    def _solve(self, since_s: Floats) -> Floats:
        media = since_s - self._smooth_tau(since_s - self.coef[0])
        for _ in range(NEWTON_STEPS):
            media = media - (media + self._smooth_tau(media) - since_s) / self.rate(media)
        return media

    def as_object(self) -> dict[str, Any]:
        """The `map` of an alignment file; each piece has its own coefficients around the same `t_mid_s`."""
        edges = [None, *(at for at, _ in self.jumps), None]
        level = self._level(np.arange(len(self.jumps) + 1))
        pieces = [
            {
                "from_s": edges[k],
                "until_s": edges[k + 1],
                "jump_s": self.jumps[k - 1][1] if k else 0.0,
                "coef": [self.coef[0] + float(level[k]), *self.coef[1:]],
            }
            for k in range(len(self.jumps) + 1)
        ]
        return {
            "kind": "pieces" if self.jumps else "poly",
            "t_mid_s": self.t_mid_s,
            "coef": list(self.coef),
            "pieces": pieces if self.jumps else None,
            "valid_s": list(self.valid_s),
        }

    @classmethod
    def from_object(cls, alignment: dict[str, Any]) -> ClockMap:
        """Read the map back from an alignment file (schema alignment/1). Raises KeyError, TypeError, ValueError."""
        body = alignment["map"]
        first, last = body["valid_s"]
        later = (body.get("pieces") or [])[1:]
        is_of_camera = alignment.get("master_clock") == REFERENCE_CLOCK
        epoch = 0 if is_of_camera else int(alignment["epoch_hl2_qpc"])
        if not body["coef"] or abs(epoch) > MOST_TICKS:
            raise ValueError("its map places nothing")
        return cls(
            epoch_ticks=epoch,
            t_mid_s=float(body["t_mid_s"]),
            coef=tuple(float(c) for c in body["coef"]),
            valid_s=(float(first), float(last)),
            jumps=tuple((float(piece["from_s"]), float(piece["jump_s"])) for piece in later),
        )


def sampled_until(last_t_s: float) -> float:
    """The next whole second after the last media time: as far as the map is handed out."""
    return math.floor(last_t_s) + 1.0


def sample_rows(clock_map: ClockMap, last_t_s: float) -> list[tuple[float, int]]:
    """The map at 31 media times up to the next whole second after `last_t_s`, and two rows at each jump."""
    last = sampled_until(last_t_s)
    inside = clock_map.breaks_s[(clock_map.breaks_s >= 0.0) & (clock_map.breaks_s < last)]
    times = np.unique(
        np.concatenate([np.linspace(0.0, last, SAMPLE_ROWS), inside, np.nextafter(inside, np.inf)])
    )
    ticks = clock_map.to_ticks(times)
    return [(float(t), int(k)) for t, k in zip(times, ticks, strict=True)]
