"""Spoken words in an export, in seconds: a region has a label and a text, two entries with one id."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

from kitchensync.dataset.annotation.forms.marked_steps import Uncounted
from kitchensync.dataset.annotation.forms.server_export import Annotation, Task
from kitchensync.task_graphs.formats.strict_json import Reader

LABELS, TEXT = "labels", "textarea"


class LabelNarration(TypedDict):
    """What was said of a step: its span, seconds, and its words; `asr_text` is what a program heard there."""

    span: list[float]
    text: str
    asr_text: NotRequired[str]
    further: NotRequired[list[LabelNarration]]


def read_narration(task: Task, findings: list[Uncounted], read: Reader) -> dict[str, LabelNarration]:
    """Return label -> span and text of the last annotation that was not cancelled. Raises BadGraph.

    `asr_text` is what a program had heard there. Further regions of one label are named and stand in `further`.
    """
    done = [one for one in task.annotations if not one.was_cancelled]
    if not done:
        return {}
    heard = _texts(task.prediction, read) if task.prediction is not None else {}
    texts = _texts(done[-1], read)
    found: dict[str, LabelNarration] = {}
    for entry in done[-1].result:
        if entry.get("type") != LABELS:
            continue
        start, end, labels, wrong = _region(entry, done[-1].place, read)
        place = f"{done[-1].place} region {entry.get('id', '?')}"
        if wrong:
            findings.append(Uncounted(wrong, place))
            continue
        region = str(entry.get("id"))
        said: LabelNarration = {"span": [start, end], "text": texts.get(region, "")}
        if region in heard:
            said["asr_text"] = heard[region]
        for label in labels:
            if label in found:
                findings.append(Uncounted("label twice", place))
                found[label].setdefault("further", []).append(said)
            else:
                found[label] = said
    return found


@dataclass(frozen=True, slots=True)
class SpokenRegion:
    """What was said in a span of the film, seconds, about a step."""

    region: str
    label: str
    start_s: float
    end_s: float
    text: str


def spoken_regions(
    one: Annotation, known: Collection[str], findings: list[Uncounted], read: Reader
) -> list[SpokenRegion]:
    """Return the regions that have a text, `known` being all labels; add what does not count. Raises BadGraph."""
    texts = _texts(one, read)
    found: list[SpokenRegion] = []
    for entry in one.result:
        if entry.get("type") != LABELS:
            continue
        start_s, end_s, labels, wrong = _region(entry, one.place, read)
        region = str(entry.get("id", "?"))
        if wrong or not {*known}.issuperset(labels):
            findings.append(Uncounted(wrong or "unknown label", f"{one.place} region {region}"))
        elif text := " ".join(texts.get(region, "").split()):
            found += [SpokenRegion(region, label, start_s, end_s, text) for label in labels]
    return found


def _region(entry: dict[str, Any], place: str, read: Reader) -> tuple[float, float, list[str], str]:
    """Return begin and end in seconds, the labels, and why it does not count. Raises BadGraph."""
    place = f"{place} region {entry.get('id', '?')}"
    value = read.object(entry.get("value"), place)
    start, end = _second(value.get("start"), place, read), _second(value.get("end"), place, read)
    labels = [read.text(one, place) for one in read.array(value.get(LABELS, []), place)]
    length_s: Any = entry.get("original_length")
    is_late = type(length_s) in (int, float) and end > length_s
    wrong = "end before start" if end < start else "region past the end" if is_late else ""
    return start, end, labels, wrong if labels else "region without label"


def _texts(one: Annotation, read: Reader) -> dict[str, str]:
    """Return what was written by region; several lines are joined."""
    found = {}
    for entry in one.result:
        if entry.get("type") == TEXT:
            value = read.object(entry.get("value"), one.place)
            lines = [read.text(line, one.place) for line in read.array(value.get("text", []), one.place)]
            found[str(entry.get("id"))] = "\n".join(lines)
    return found


def _second(value: Any, place: str, read: Reader) -> float:
    if type(value) not in (int, float) or not 0 <= value < 1e7:
        raise read.fail(place, "a time that is no number of seconds")
    return float(value)
