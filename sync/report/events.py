"""What people did, read for a report: marks on the timeline and the story of the recipe."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from storage.events import Event
from storage.manifest import Manifest
from sync.frame_index.event_frames import in_words, read_event_frames
from sync.recording.noted import read_noted
from sync.report.streams import ShownTime

KINDS = ("done", "error", "undo")
MOST_LABEL = 60


@dataclass(frozen=True, slots=True)
class Mark:
    """One event: a number to find it by, its time, a short label and the whole of it in words."""

    number: int
    kind: str
    at_s: float
    label: str
    words: str
    uncertainty_ms: float
    writer: str
    undone: bool = False
    shown: str = ""
    "The pictures that show it, where synchronization placed it."


@dataclass(frozen=True, slots=True)
class ShownStep:
    """One step of the order shown: when it was done, and what went wrong at it."""

    position: int
    text: str
    done_s: float | None
    errors: list[str]


@dataclass(frozen=True, slots=True)
class ShownRecipe:
    """The recipe that was shown."""

    name: str
    graph_hash: str
    source: str
    seed: str
    steps: list[ShownStep]


@dataclass
class Story:
    """All events with their marks; `problems` name the logs that cannot be read to their end."""

    marks: list[Mark] = field(default_factory=list)
    recipe: ShownRecipe | None = None
    problems: list[str] = field(default_factory=list)

    def of_kind(self, kind: str) -> list[Mark]:
        """The marks of one kind; "other" takes all kinds that have no lane of their own."""
        return [m for m in self.marks if (m.kind if m.kind in KINDS else "other") == kind]


def read_story(recording: Path, manifest: Manifest, time: ShownTime) -> Story:
    """Read the events of a recording; a damaged log is read up to its damage."""
    story = Story()
    events, story.problems = read_noted(recording)
    undone = _taken_back(events)
    places = _places(recording)
    for number, event in enumerate(events, start=1):
        mark = _mark(number, event, time, undone=event["op_id"] in undone)
        story.marks.append(replace(mark, shown=places.get((event["writer"], event["host_ns"]), "")))
    chosen = [event["body"] for event in events if event["kind"] == "recipe"]
    shown = {**(chosen[-1] if chosen else {}), **(manifest.get("recipe") or {})}
    if shown:
        story.recipe = _recipe(shown, events, undone, time)
    return story


def _taken_back(events: list[Event]) -> set[Any]:
    """From the last to the first, as the app does: an undo that was itself taken back takes nothing back.

    What one undo took back together stands in lines of their own, `<id>`, `<id>.1`.
    """
    undone: set[Any] = set()
    for event in reversed(events):
        if event["kind"] == "undo" and str(event["op_id"]).partition(".")[0] not in undone:
            undone.add(event["body"].get("undoes"))
    return undone - {None}


def _places(recording: Path) -> dict[tuple[str, int], str]:
    """The pictures that show each event, in words, by writer and time; nothing before `sync`."""
    placed = read_event_frames(recording)
    return {(str(one["writer"]), int(one["host_ns"])): in_words(one["frames"]) for one in placed}


def _mark(number: int, event: Event, time: ShownTime, *, undone: bool) -> Mark:
    kind, body = str(event.get("kind", "")), event["body"]
    what = _first(body, "category_name") if kind == "error" else None
    text = _first(body, "text", "title", "name", "note") or ""
    step = _first(body, "position", "step")
    label = ": ".join(part for part in (what, text or (f"step {step}" if step is not None else "")) if part)
    words = [kind, label, str(body["note"]) if body.get("note") and body.get("note") != text else ""]
    if kind == "undo":
        words = [kind, f"takes back: {_first(body, 'undone_kind') or 'an event'}", label]
    return Mark(
        number=number,
        kind=kind,
        at_s=time.seconds(event["host_ns"]),
        label=(label or kind)[:MOST_LABEL],
        words=", ".join(part for part in words if part) + (" (taken back)" if undone else ""),
        uncertainty_ms=float(event.get("uncertainty_ns") or 0) / 1e6,
        writer=str(event["writer"]),
        undone=undone,
    )


def _first(body: dict[str, Any], *names: str) -> str | None:
    return next((str(body[name]) for name in names if body.get(name) not in (None, "")), None)


def _recipe(recipe: dict[str, Any], events: list[Event], undone: set[Any], time: ShownTime) -> ShownRecipe:
    valid = [event for event in events if event["op_id"] is None or event["op_id"] not in undone]
    steps = recipe.get("steps") or {}
    shown = []
    for position, node in enumerate(recipe.get("order") or [], start=1):
        here = [event for event in valid if str(event["body"].get("step")) == str(node)]
        done = next((event["host_ns"] for event in here if event["kind"] == "done"), None)
        errors = [
            ", ".join(filter(None, (_first(e["body"], "category_name"), _first(e["body"], "note"))))
            or "error"
            for e in here
            if e["kind"] == "error"
        ]
        shown.append(
            ShownStep(
                position,
                _text(steps, node),
                time.seconds(done) if done is not None else None,
                errors,
            )
        )
    return ShownRecipe(
        name=_first(recipe, "title", "name", "recipe") or "unnamed",
        graph_hash=str(recipe.get("graph_hash") or ""),
        source=str(recipe.get("source") or ""),
        seed=str(recipe.get("seed", "")),
        steps=shown,
    )


def _text(steps: Any, node: Any) -> str:
    found = steps.get(str(node)) if isinstance(steps, dict) else None
    if isinstance(found, dict):
        found = found.get("text")
    return str(found or f"step {node}")
