"""Read a released data set: steps, errors and pictures of a recording, with NumPy and PyAV alone.

    python examples/load_release.py our-kitchens

`Steps` has the length and items that PyTorch's `Dataset` wants, without needing PyTorch.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import av
import numpy as np


class Steps:
    """Every step that was performed: `steps[k]` is its text, whether something went wrong, and its first picture."""

    def __init__(self, folder: Path) -> None:
        """Read the annotations of a data set."""
        self.folder = folder
        recordings = json.loads((folder / "annotation_json" / "error_annotations.json").read_text())
        self.rows = [
            (one["recording_id"], step)
            for one in recordings
            for step in one["step_annotations"]
            if step["start_time"] >= 0
        ]

    def __len__(self) -> int:
        """Return how many steps were performed."""
        return len(self.rows)

    def __getitem__(self, k: int) -> dict[str, Any]:
        """Return step k with its first picture, (rows, columns, 3) uint8."""
        recording, step = self.rows[k]
        film = self.folder / "captain_cook_4d" / "gopro" / "resolution_360p" / f"{recording}_360p.mp4"
        tags = [error["tag"] for error in step.get("errors", [])]
        return {"recording": recording, **step, "tags": tags, "picture": picture_at(film, step["start_time"])}


def picture_at(film: Path, seconds: float) -> np.ndarray:
    """Decode the picture shown at a time of a film."""
    with av.open(str(film)) as source:
        source.seek(int(seconds * av.time_base), backward=True)
        for frame in source.decode(video=0):
            if frame.time is not None and frame.time + 1 / frame.time_base.denominator > seconds:
                return frame.to_ndarray(format="rgb24")
    return frame.to_ndarray(format="rgb24")


if __name__ == "__main__":
    steps = Steps(Path(sys.argv[1]))
    for k in range(len(steps)):
        step = steps[k]
        print(
            step["recording"],
            f"{step['start_time']:7.2f} s",
            step["picture"].shape,
            step["description"],
            step["tags"],
        )
