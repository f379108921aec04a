"""Steps that end after their film does: whoever reads the film there finds nothing."""

from __future__ import annotations

from recipe_app.releases.data_set_folder import DataSet

ROUNDING_S = 0.01
"""Lengths of films are kept with two decimals."""


def past_the_film(data: DataSet) -> list[str]:
    """Return a line about the steps that end after their film, none where all lie inside."""
    late = [
        f"{one.recording_id} step {entry.step_id}"
        for one in data.annotations.recordings
        for entry in one.entries
        if entry.end_s > data.lengths_s.get(one.recording_id, float("inf")) + ROUNDING_S
    ]
    return [f"{len(late)} steps end after their film: {', '.join(late[:3])}"] if late else []
