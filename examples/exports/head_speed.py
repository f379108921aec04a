"""An export of your own: how fast the head turned during each step, as CSV.

python examples/exports/head_speed.py speeds.csv data
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

from kitchensync.exports.exported_span import each_recording
from kitchensync.reader.opened_recording import OpenedRecording


def speeds(recording: OpenedRecording) -> list[tuple[str, int, str, float]]:
    """Return recording, node, text and median speed in rad/s of every step with samples."""
    rows = []
    for step in recording.steps.dropna(subset=["start", "end"]).itertuples():  # steps that were done
        turning = recording.gyroscope[recording.gyroscope.span(step.start, step.end)]
        if len(turning):
            speed = float(np.median(np.linalg.norm(turning, axis=1)))
            rows.append((recording.id, step.node, step.step, speed))
    return rows


def main(out: Path, *paths: Path) -> None:
    made, left_out = each_recording(paths, speeds)  # opens only what consent allows to export
    with out.open("x", newline="") as file:  # never over another file
        writer = csv.writer(file)
        writer.writerow(["recording", "node", "step", "rad_per_s"])
        for rows in made:
            writer.writerows(rows)
    for name, why in left_out.items():
        print(f"{name} left out: {why}", file=sys.stderr)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
