"""Tasks for an annotation server: one film each, with what touches told as a proposal."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from recipe_app.annotation.forms.frame_times import region_of
from recipe_app.annotation.forms.marked_steps import TIMELINE, Spans

FORMS = ("timeline", "audio")
MODEL = "step-events/1"
"""Who made the proposals: touches of the tablet."""

Task = dict[str, Any]


def task_of(data: dict[str, Any], touched: Spans, fps: Fraction, form: str) -> Task:
    """Return a task as a server takes it; `data` holds `frames`, which no region passes."""
    frames = int(data["frames"])
    result = [
        {"id": f"touch-{label.partition(' ')[0]}-{number}"}
        | (
            _timeline(label, start_s, end_s, fps, frames)
            if form == "timeline"
            else _audio(label, start_s, end_s, float(frames / fps))
        )
        for label, spans in touched.items()
        for number, (start_s, end_s) in enumerate(spans, 1)
    ]
    proposal = [{"model_version": MODEL, "score": 1.0, "result": result}] if result else []
    return {"data": data, "predictions": proposal}


def _timeline(label: str, start_s: float, end_s: float, fps: Fraction, frames: int) -> dict[str, Any]:
    start, end = (min(frame, frames) for frame in region_of(start_s, end_s, fps))
    value = {"ranges": [{"start": start, "end": end}], TIMELINE: [label]}
    return {"from_name": "step", "to_name": "video", "type": TIMELINE, "origin": "prediction", "value": value}


def _audio(label: str, start_s: float, end_s: float, length_s: float) -> dict[str, Any]:
    value = {"start": start_s, "end": min(end_s, length_s), "channel": 0, "labels": [label]}
    control = {"from_name": "action", "to_name": "audio", "type": "labels"}
    return {**control, "original_length": length_s, "value": value}
