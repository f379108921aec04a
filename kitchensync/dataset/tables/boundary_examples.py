"""Examples around the boundaries of steps: the picture behind a step shows it done, others show a mistake.

These are the picture in front of the step, and pictures of other recordings in which something else was done: with
another verb, another noun, or both, by a table of what all steps do to what, which a lab may edit.
"""

from __future__ import annotations

import csv
import io
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, zip_longest
from pathlib import Path

from kitchensync.dataset.tables.coherence_examples import JudgedStep, examples, recording_of
from kitchensync.dataset.tables.csv_text import csv_text
from kitchensync.dataset.tables.step_rows import done_in_order, instruction
from kitchensync.task_graphs.errors import BadGraph
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording, Entry, Seconds
from kitchensync.task_graphs.formats.graph_files import read_text
from kitchensync.task_graphs.model import Step
from kitchensync.task_graphs.text.actions import action_of
from kitchensync.task_graphs.text.spans import pieces, plural

Deed = tuple[str, str | None]
"""Verb and noun; None where the text names neither ingredient nor tool."""
COLUMNS = ("text", "verb", "noun")


def actions_of(recordings: Iterable[AnnotatedRecording]) -> dict[str, Deed]:
    """Return what each text of a step says: its verb, and the first ingredient, else tool, in the plural."""
    found: dict[str, Deed] = {}
    for text in sorted({e.description for one in recordings for e in one.entries}):
        step = Step(0, text)
        nouns = pieces(step.instruction, "ingredient") or pieces(step.instruction, "tool")
        found[text] = action_of(step.action or step.instruction), plural(nouns[0].lower()) if nouns else None
    return found


def actions_table(actions: Mapping[str, Deed]) -> str:
    """Return the table, CSV; words that mean the same are to get one name in it."""
    return csv_text(COLUMNS, ((text, verb, noun or "") for text, (verb, noun) in actions.items()))


def read_actions(path: Path) -> dict[str, Deed]:
    """Read a table as `actions_table` writes it, by text. Raises BadGraph, which names the row."""
    text = read_text(path).removeprefix("\ufeff")  # what spreadsheets put in front
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    except csv.Error as error:
        raise BadGraph(path.name, "", f"no table ({error})") from error
    found: dict[str, Deed] = {}
    if rows[:1] != [list(COLUMNS)]:
        raise BadGraph(path.name, "row 1", f"the columns are {', '.join(COLUMNS)}")
    for number, row in enumerate(rows[1:], 2):
        place = f"row {number}"
        if len(row) != len(COLUMNS) or not row[1].strip():
            raise BadGraph(path.name, place, "a text, its verb and its noun, which may be empty")
        if row[0] in found:
            raise BadGraph(path.name, place, "this text stands twice; remove one line")
        found[row[0]] = row[1].strip(), row[2].strip() or None
    return found


INCOMPLETE = "Action Incomplete"
OTHER_VERB, OTHER_NOUN, OTHER_BOTH = "MisalignSRL_V", "MisalignSRL_ARG1", "MisalignSRL_V_ARG1"
KINDS = {(False, True): OTHER_VERB, (True, False): OTHER_NOUN, (False, False): OTHER_BOTH}
"""Whether verb and noun are the same -> kind of mistake."""
ALIKE = frozenset({"Carry", "Take", "Put", "Hold", "Pull", "Push", "Remove"})
"""Verbs for which another verb may look the same."""
INCOMPLETE_S = 2.0
"""A shorter step is not shown undone."""
WITH_ERRORS, REPEATED = "with an error that a frame shows", "the same was done just before"


class BoundaryExample(JudgedStep):
    """A step with one picture: at `time` seconds of the film of `recording`; `step` is when the step was done."""

    verb_noun_pair: list[str | None]
    step: list[Seconds]
    recording: str
    time: float


@dataclass(frozen=True, slots=True)
class Done:
    """A step that shows no error: entry `place` of a recording; `repeats` the step before it."""

    recording: str
    place: int
    entry: Entry
    verb: str
    noun: str | None
    repeats: bool

    @property
    def middle_s(self) -> float:
        """A moment inside the step, as a narration has one."""
        return (self.entry.start_s + self.entry.end_s) / 2


def done_steps(one: AnnotatedRecording, actions: Mapping[str, Deed], left_out: Counter[str]) -> list[Done]:
    """Return the steps of a recording that show no error, in script order; count why others are left out."""
    repeats = {
        id(after)
        for before, after in pairwise(done_in_order(one))
        if actions[before.description] == actions[after.description]
    }
    found = []
    for place, (entry, (why, example)) in enumerate(zip(one.entries, examples(one), strict=True)):
        if example is None or example["mistake"]:
            left_out[why or WITH_ERRORS] += 1
            continue
        found.append(Done(one.recording_id, place, entry, *actions[entry.description], id(entry) in repeats))
    return found


class OtherSteps:
    """All steps of a part by verb and noun, to draw one from that is not what a step asks for."""

    def __init__(
        self, steps: Iterable[Done], recordings: Iterable[AnnotatedRecording], actions: Mapping[str, Deed]
    ) -> None:
        """Take in steps, and from their recordings when something was first done."""
        self._by: dict[tuple[str | None, str | None], list[Done]] = defaultdict(list)
        for step in steps:
            if step.noun is not None:
                for key in ((step.verb, None), (None, step.noun), (None, None)):
                    self._by[key].append(step)
        self._begun_s: dict[Deed, dict[str, float]] = defaultdict(
            dict
        )  # what was done -> recording -> first time
        for one in recordings:
            for entry in reversed(done_in_order(one)):
                self._begun_s[actions[entry.description]][one.recording_id] = float(entry.start_s)

    def drawn(self, step: Done, kind: str, chance: random.Random, *, corrected: bool) -> Done | None:
        """Return a step of another recording for a kind of mistake; None where there is none."""
        if step.noun is None or (kind == OTHER_VERB and step.verb in ALIKE):
            return None
        pool = self._by[step.verb if kind == OTHER_NOUN else None, step.noun if kind == OTHER_VERB else None]
        start = chance.randrange(len(pool)) if pool else 0
        begun_s = self._begun_s[step.verb, step.noun]
        fitting = (
            other
            for other in chain(pool[start:], pool[:start])
            if other.recording != step.recording
            and kind == KINDS.get((other.verb == step.verb, other.noun == step.noun))
            and not (corrected and begun_s.get(other.recording, other.entry.end_s) < other.entry.end_s)
        )
        return next(fitting, None)


def boundary_examples(
    recordings: Iterable[AnnotatedRecording],
    actions: Mapping[str, Deed],
    part_of: Mapping[str, str],
    seed: int,
    *,
    corrected: bool = False,
) -> tuple[list[BoundaryExample], Counter[str], int]:
    """Return the examples, why steps are left out, and how many steps repeat the one before them.

    `actions` are verb and noun of each text. Mistakes are drawn from recordings of the same part. As published,
    another step is seen at a moment inside it and repeated steps stay; `corrected`: it is seen at its end, in a
    recording where what is asked for was not done before, and steps that repeat the one before them are left out.
    """
    left_out: Counter[str] = Counter()
    parts: dict[str, list[AnnotatedRecording]] = defaultdict(list)
    for one in recordings:
        parts[part_of.get(one.recording_id, "")].append(one)
    rows: list[BoundaryExample] = []
    repeated = 0
    for ours in parts.values():
        steps = [step for one in ours for step in done_steps(one, actions, left_out)]
        others = OtherSteps(steps, ours, actions)
        for step in steps:
            repeated += step.repeats
            if step.repeats and corrected:
                left_out[REPEATED] += 1
            else:
                rows += _rows(step, others, seed, corrected=corrected)
    return rows, left_out, repeated


def balanced(
    rows: Sequence[BoundaryExample], part_of: Mapping[str, str], wanted: int, seed: int
) -> list[BoundaryExample]:
    """Draw as many successes as mistakes of each part, `wanted` of each at most, kinds of mistakes in turn."""
    parts: dict[str, list[BoundaryExample]] = defaultdict(list)
    for row in rows:
        parts[part_of.get(recording_of(row), "")].append(row)
    kept: set[str] = set()
    for part, ours in parts.items():
        mixed = random.Random(f"{seed} {part}").sample(ours, len(ours))
        kinds: dict[str | None, list[BoundaryExample]] = defaultdict(list)
        for row in mixed:
            kinds[row["mistake_type"]].append(row)
        right = kinds.pop(None, [])
        turns = zip_longest(*(kinds[kind] for kind in sorted(kinds, key=str)))
        wrong = [row for row in chain.from_iterable(turns) if row is not None]
        count = min(wanted, len(right), len(wrong))
        kept |= {row["example_id"] for row in (*right[:count], *wrong[:count])}
    return [row for row in rows if row["example_id"] in kept]


def _rows(step: Done, others: OtherSteps, seed: int, *, corrected: bool) -> Iterable[BoundaryExample]:
    start_s, end_s = float(step.entry.start_s), float(step.entry.end_s)
    shown: list[tuple[str, str | None, str, float]] = [("pos", None, step.recording, end_s)]
    if step.entry.end_s - step.entry.start_s >= INCOMPLETE_S:
        shown.append(("hardneg", INCOMPLETE, step.recording, start_s))
    for kind in KINDS.values():
        chance = random.Random(f"{seed} {step.recording} {step.place} {kind}")
        if (other := others.drawn(step, kind, chance, corrected=corrected)) is not None:
            at_s = round(float(other.entry.end_s) if corrected else other.middle_s, 3)
            shown.append((f"easyneg_{kind}_{other.recording}_{at_s}", kind, other.recording, at_s))
    for name, mistake, recording, at_s in shown:
        yield {
            "example_id": f"{step.recording}_{step.place}/{name}",
            "procedure_id": step.entry.step_id,
            "procedure_description": instruction(step.entry),
            "mistake": mistake is not None,
            "mistake_type": mistake,
            "verb_noun_pair": [step.verb, step.noun],
            "step": [step.entry.start_s, step.entry.end_s],
            "recording": recording,
            "time": at_s,
        }


def published_faults(repeated: int, *, frames: bool) -> list[str]:
    """Report what the published program does otherwise than was meant, a line each."""
    lines = [
        "steps of other recordings are shown at a moment inside them, as published (the time of narration); "
        "--corrected takes their end"
    ]
    if repeated:
        lines.append(
            f"{repeated} steps repeat the one before and stay, as published; --corrected leaves them out"
        )
    if frames:
        lines.append(
            "only black pictures are dark, as published (0.2 of 255); --corrected takes 0.2 of full brightness"
        )
        lines.append(
            "one picture is taken of each moment, as published; --corrected takes the sharpest of five"
        )
    return lines
