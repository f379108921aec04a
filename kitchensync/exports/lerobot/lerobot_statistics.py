"""Statistics of features for LeRobot: minimum, maximum, mean, standard deviation and quantiles."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kitchensync.shell.array_types import Floats, Int64

if TYPE_CHECKING:
    import av

QUANTILES = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}
EACH = 4
"""Only every fourth pixel is counted, in both directions."""
Statistics = dict[str, npt.NDArray[Any]]
"""Arrays by name; `count` (1,)."""


@dataclass
class PictureCounts:
    """Histograms of red, green and blue, from which all statistics follow."""

    levels: Int64 = field(default_factory=lambda: np.zeros((3, 256), np.int64))
    pictures: int = 0

    def add(self, picture: av.VideoFrame) -> None:
        """Count a frame."""
        pixels = picture.to_ndarray(format="rgb24")[::EACH, ::EACH].reshape(-1, 3)
        self.levels += np.stack([np.bincount(channel, minlength=256) for channel in pixels.T])
        self.pictures += 1

    def statistics(self) -> Statistics:
        """Return the statistics of each colour, (3, 1, 1) from 0 to 1."""
        level, total = np.arange(256) / 255, self.levels.sum(axis=1)
        cumulative = np.cumsum(self.levels, axis=1) / total[:, None]
        mean = self.levels @ level / total
        by_colour = {
            "min": level[np.argmax(self.levels > 0, axis=1)],
            "max": level[255 - np.argmax(self.levels[:, ::-1] > 0, axis=1)],
            "mean": mean,
            "std": np.sqrt(np.maximum(self.levels @ level**2 / total - mean**2, 0.0)),
            **{name: level[np.argmax(cumulative >= part, axis=1)] for name, part in QUANTILES.items()},
        }
        shaped = {name: values.reshape(3, 1, 1) for name, values in by_colour.items()}
        return shaped | {"count": np.array([self.pictures])}


def statistics_of(values: Any) -> Statistics:
    """Return the statistics of a column, (n,) or (n, k)."""
    rows: Floats = np.asarray(values, np.float64).reshape(len(values), -1)
    return {
        "min": rows.min(axis=0),
        "max": rows.max(axis=0),
        "mean": rows.mean(axis=0),
        "std": rows.std(axis=0),
        **{name: np.quantile(rows, part, axis=0) for name, part in QUANTILES.items()},
        "count": np.array([len(rows)]),
    }


def joined(episodes: list[Statistics]) -> Statistics:
    """Return the statistics of several episodes together; quantiles are weighted means, as in LeRobot."""
    counts = np.array([episode["count"][0] for episode in episodes], np.float64)

    def weighted(values: list[Any]) -> Any:
        return np.tensordot(counts, np.stack(values), axes=1) / counts.sum()

    mean = weighted([episode["mean"] for episode in episodes])
    variance = weighted([episode["std"] ** 2 + (episode["mean"] - mean) ** 2 for episode in episodes])
    return {
        "min": np.min([episode["min"] for episode in episodes], axis=0),
        "max": np.max([episode["max"] for episode in episodes], axis=0),
        "mean": mean,
        "std": np.sqrt(variance),
        **{name: weighted([episode[name] for episode in episodes]) for name in QUANTILES},
        "count": np.array([int(counts.sum())]),
    }
