"""Exports of an annotation server, made by hand."""

from __future__ import annotations

from typing import Any

CONFIG = """<View><Video name="video" value="$video"/><TimelineLabels name="step" toName="video">
<Label value="S01 · stir"/><Label value="S02 · pour"/></TimelineLabels></View>"""


def region(start: int, end: int, *labels: str, number: int = 0) -> dict[str, Any]:
    """One region of whole frames."""
    value: dict[str, Any] = {"ranges": [{"start": start, "end": end}]}
    if labels:
        value["timelinelabels"] = list(labels)
    return {
        "id": f"r{start}-{end}-{number}",
        "from_name": "step",
        "to_name": "video",
        "type": "timelinelabels",
        "origin": "manual",
        "value": value,
    }


def annotation(number: int, by: int, *regions: dict[str, Any], cancelled: bool = False) -> dict[str, Any]:
    """What one person marked."""
    return {"id": number, "completed_by": by, "was_cancelled": cancelled, "result": list(regions)}


def task(
    *annotations: dict[str, Any], fps: float = 25.0, frames: int = 1000, recording: str = "take"
) -> dict[str, Any]:
    """One film to annotate, without a prediction."""
    data = {"video": "/take.mp4", "fps": fps, "frames": frames, "recording_id": recording, "title": recording}
    return {"id": 1, "data": data, "annotations": list(annotations), "predictions": []}
