"""What people did, read for a report: marks on the timeline and the story of the recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from kitchensync.operations.entries import counts
from kitchensync.operations.filed_log import filed_operations
from kitchensync.operations.planned_steps import numbered_steps, plan_of
from kitchensync.operations.reduce import reduce_log
from kitchensync.storage.errors import BadEventLog
from kitchensync.storage.events import LogEvent, taken_back
from kitchensync.storage.manifest import Manifest
from kitchensync.sync.frame_index.event_frames import in_words, read_event_frames, read_noted
from kitchensync.sync.report.streams import ShownTime
from kitchensync.task_graphs.categories import CATEGORIES

MOST_LABEL = 60
SIGNS = {
    "done": ("M0 -8A8 8 0 1 0 0 8A8 8 0 1 0 0 -8Z", "M-5 0L-1.5 4L5 -4"),
    "error": ("M0 -9L9 0L0 9L-9 0Z", "M-3 -3L3 3M-3 3L3 -3"),
    "undo": ("M-7 -7H7V7H-7Z", "M4 3A4 4 0 1 0 -3 -2M-4 -5L-3.4 -1.2L0 -3"),
    "other": ("M0 -8L8 6H-8Z", "M0 -3V3M-3 0H3"),
}
"""Circle with tick, diamond with cross, square with arrow, triangle: the frame, and what is drawn into it."""


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
    undone: bool
    shown: str  # the pictures that show it, where synchronization placed it

    @property
    def lane(self) -> str:
        """The kind of its lane; "other" is that of all kinds without one of their own."""
        return self.kind if self.kind in SIGNS else "other"

    @property
    def sign(self) -> Markup:
        """Draw the sign of its kind."""
        frame, ink = SIGNS[self.lane]
        drawing = Markup('<path d="{}" class="sign {}"/><path d="{}" class="ink"/>')
        return drawing.format(frame, self.lane, ink)


@dataclass(frozen=True, slots=True)
class ShownStep:
    """A step with its number, when it was first done, and what went wrong at it."""

    number: int | None
    text: str
    done_s: float | None
    errors: list[str]


@dataclass(frozen=True, slots=True)
class ShownRecipe:
    """The recipe that was shown and its steps in the order cooked, as the desk lists them."""

    name: str
    graph_hash: str
    source: str
    seed: str
    steps: list[ShownStep]


@dataclass(frozen=True, slots=True)
class Story:
    """All events with their marks, the recipe, and the logs that cannot be read to their end."""

    marks: list[Mark]
    recipe: ShownRecipe | None
    problems: list[str]


def read_story(recording: Path, manifest: Manifest, time: ShownTime) -> Story:
    """Read the events of a recording; a damaged log is read up to its damage."""
    events, problems = read_noted(recording)
    undone = taken_back(events)
    placed = read_event_frames(recording)  # nothing before `sync`
    places = {(str(one["writer"]), int(one["host_ns"])): in_words(one["frames"]) for one in placed}
    marks = []
    for number, event in enumerate(events, start=1):
        shown = places.get((event["writer"], event["host_ns"]), "")
        marks.append(_mark(number, event, time.seconds(event["host_ns"]), undone, shown))
    return Story(marks, _recipe(recording, manifest, time), problems)


def _mark(number: int, event: LogEvent, at_s: float, undone: set[str], shown: str) -> Mark:
    kind, body, is_undone = str(event.get("kind", "")), event["body"], event["op_id"] in undone
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
        at_s=at_s,
        label=(label or kind)[:MOST_LABEL],
        words=", ".join(part for part in words if part) + (" (taken back)" if is_undone else ""),
        uncertainty_ms=float(event.get("uncertainty_ns") or 0) / 1e6,
        writer=str(event["writer"]),
        undone=is_undone,
        shown=shown,
    )


def _first(body: Mapping[str, object], *names: str) -> str | None:
    return next((str(body[name]) for name in names if body.get(name) not in (None, "")), None)


def _recipe(recording: Path, manifest: Manifest, time: ShownTime) -> ShownRecipe | None:
    named = manifest.get("recipe") or {}
    named = {"name": named} if isinstance(named, str) else named
    try:
        state = reduce_log(filed_operations(recording))
    except BadEventLog:  # named with the events
        state = None
    frozen: Mapping[str, object] = (state and state["recording"]) or {}
    recipe = {**frozen, **named}
    if not recipe:
        return None
    steps = []
    if state and frozen:
        plan = plan_of(state)
        for node, number in numbered_steps(state, plan).items():
            runs = state["steps"][str(node)]["runs"] if str(node) in state["steps"] else []
            done_s = next((time.seconds(run["end"]) for run in runs if run["end"]), None)
            texts = []
            for error in state["errors"].values():
                if error["node"] == node and counts(error):
                    names = " + ".join(CATEGORIES[category].name for category in error["categories"])
                    texts.append(f"{names}, {error['description']}" if error["description"] else names)
            steps.append(ShownStep(number, plan.steps[node].words, done_s, texts))
    return ShownRecipe(
        name=_first(recipe, "title", "name", "recipe") or "unnamed",
        graph_hash=str(recipe.get("graph_hash") or ""),
        source=str(recipe.get("source") or ""),
        seed=str(recipe.get("seed", "")),
        steps=steps,
    )
