"""Narrations in an export, in seconds: the label and the text of a region are two entries with the same id."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

from kitchensync.dataset.annotation.forms.marked_steps import Uncounted
from kitchensync.dataset.annotation.forms.server_export import Annotation, Task
from kitchensync.task_graphs.formats.strict_json import Reader

LABELS, TEXT = "labels", "textarea"


class LabelNarration(TypedDict):
    """A narration of a step: span in seconds and text; `asr_text` is the text from speech recognition."""

    span: list[float]
    text: str
    asr_text: NotRequired[str]
    further: NotRequired[list[LabelNarration]]


def read_narration(task: Task, findings: list[Uncounted], read: Reader) -> dict[str, LabelNarration]:
    """Return label -> narration of the last annotation that was not cancelled. Raises BadGraph.

    Further regions of the same label are in `further`, and are reported as findings.
    """
    finished = [annotation for annotation in task.annotations if not annotation.was_cancelled]
    if not finished:
        return {}
    annotation = finished[-1]
    recognized = _texts(task.prediction, read) if task.prediction is not None else {}
    texts = _texts(annotation, read)
    narrations: dict[str, LabelNarration] = {}
    for entry in annotation.result:
        if entry.get("type") != LABELS:
            continue
        start, end, labels, fault = _region(entry, annotation.place, read)
        place = f"{annotation.place} region {entry.get('id', '?')}"
        if fault:
            findings.append(Uncounted(fault, place))
            continue
        region = str(entry.get("id"))
        narration: LabelNarration = {"span": [start, end], "text": texts.get(region, "")}
        if region in recognized:
            narration["asr_text"] = recognized[region]
        for label in labels:
            if label in narrations:
                findings.append(Uncounted("label twice", place))
                narrations[label].setdefault("further", []).append(narration)
            else:
                narrations[label] = narration
    return narrations


@dataclass(frozen=True, slots=True)
class SpokenRegion:
    """A transcribed region: span of the video, seconds, label of its step, and text."""

    region: str
    label: str
    start_s: float
    end_s: float
    text: str


def spoken_regions(
    annotation: Annotation, all_labels: Collection[str], findings: list[Uncounted], read: Reader
) -> list[SpokenRegion]:
    """Return the regions with a text; append findings. Raises BadGraph."""
    texts = _texts(annotation, read)
    regions: list[SpokenRegion] = []
    for entry in annotation.result:
        if entry.get("type") != LABELS:
            continue
        start_s, end_s, labels, fault = _region(entry, annotation.place, read)
        region = str(entry.get("id", "?"))
        if fault or not {*all_labels}.issuperset(labels):
            findings.append(Uncounted(fault or "unknown label", f"{annotation.place} region {region}"))
        elif text := " ".join(texts.get(region, "").split()):
            regions += [SpokenRegion(region, label, start_s, end_s, text) for label in labels]
    return regions


def _region(entry: dict[str, Any], place: str, read: Reader) -> tuple[float, float, list[str], str]:
    """Return start and end in seconds, labels, and why the region is invalid, if it is. Raises BadGraph."""
    place = f"{place} region {entry.get('id', '?')}"
    value = read.object(entry.get("value"), place)
    start, end = _second(value.get("start"), place, read), _second(value.get("end"), place, read)
    labels = [read.text(label, place) for label in read.array(value.get(LABELS, []), place)]
    length_s: Any = entry.get("original_length")
    is_late = type(length_s) in (int, float) and end > length_s
    fault = "end before start" if end < start else "region past the end" if is_late else ""
    return start, end, labels, fault if labels else "region without label"


def _texts(annotation: Annotation, read: Reader) -> dict[str, str]:
    """Return the text of each region; lines are joined."""
    texts, place = {}, annotation.place
    for entry in annotation.result:
        if entry.get("type") == TEXT:
            value = read.object(entry.get("value"), place)
            lines = [read.text(line, place) for line in read.array(value.get("text", []), place)]
            texts[str(entry.get("id"))] = "\n".join(lines)
    return texts


def _second(value: Any, place: str, read: Reader) -> float:
    if type(value) not in (int, float) or not 0 <= value < 1e7:
        raise read.fail(place, "a time that is not a number of seconds")
    return float(value)
