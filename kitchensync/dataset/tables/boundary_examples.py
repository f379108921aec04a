"""Examples at the boundaries of steps: the frame after a step shows it done, other frames show a mistake.

Mistakes are the frame before the step, and frames of other recordings after a step with another verb, another noun,
or both. Verb and noun of each step text come from a table, which a lab may edit.
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
"""Verb and noun; None if the text names neither ingredient nor tool."""
COLUMNS = ("text", "verb", "noun")


def actions_of(recordings: Iterable[AnnotatedRecording]) -> dict[str, Deed]:
    """Return the verb of each step text, and the first ingredient, else tool, in the plural."""
    actions: dict[str, Deed] = {}
    for text in sorted({entry.description for recording in recordings for entry in recording.entries}):
        step = Step(0, text)
        nouns = pieces(step.instruction, "ingredient") or pieces(step.instruction, "tool")
        actions[text] = (
            action_of(step.action or step.instruction),
            plural(nouns[0].lower()) if nouns else None,
        )
    return actions


def actions_table(actions: Mapping[str, Deed]) -> str:
    """Return the table as CSV, to be edited so that synonyms become one word."""
    return csv_text(COLUMNS, ((text, verb, noun or "") for text, (verb, noun) in actions.items()))


def read_actions(path: Path) -> dict[str, Deed]:
    """Read a table of the form of `actions_table`, by text. Raises BadGraph."""
    text = read_text(path).removeprefix("\ufeff")  # spreadsheets write a byte order mark
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    except csv.Error as error:
        raise BadGraph(path.name, "", f"not a table ({error})") from error
    actions: dict[str, Deed] = {}
    if rows[:1] != [list(COLUMNS)]:
        raise BadGraph(path.name, "row 1", f"the columns are {', '.join(COLUMNS)}")
    for number, row in enumerate(rows[1:], 2):
        place = f"row {number}"
        if len(row) != len(COLUMNS) or not row[1].strip():
            raise BadGraph(path.name, place, "a text, its verb and its noun, which may be empty")
        if row[0] in actions:
            raise BadGraph(path.name, place, "this text is there twice; remove one line")
        actions[row[0]] = row[1].strip(), row[2].strip() or None
    return actions


INCOMPLETE = "Action Incomplete"
OTHER_VERB, OTHER_NOUN, OTHER_BOTH = "MisalignSRL_V", "MisalignSRL_ARG1", "MisalignSRL_V_ARG1"
KINDS = {(False, True): OTHER_VERB, (True, False): OTHER_NOUN, (False, False): OTHER_BOTH}
"""(same verb, same noun) -> kind of mistake."""
ALIKE = frozenset({"Carry", "Take", "Put", "Hold", "Pull", "Push", "Remove"})
"""Verbs that may look the same as another verb."""
INCOMPLETE_S = 2.0
"""Minimum length of a step shown as incomplete, seconds."""
WITH_ERRORS, REPEATED = "with an error that a frame shows", "the same was done just before"


class BoundaryExample(JudgedStep):
    """A step with one frame, at `time` seconds of the video of `recording`; `step` is its start and end."""

    verb_noun_pair: list[str | None]
    step: list[Seconds]
    recording: str
    time: float


@dataclass(frozen=True, slots=True)
class Done:
    """A step without visible error: entry `place` of a recording; `repeats` if it equals the previous step."""

    recording: str
    place: int
    entry: Entry
    verb: str
    noun: str | None
    repeats: bool

    @property
    def middle_s(self) -> float:
        """A time inside the step, in place of the time of a narration."""
        return (self.entry.start_s + self.entry.end_s) / 2


def done_steps(
    recording: AnnotatedRecording, actions: Mapping[str, Deed], left_out: Counter[str]
) -> list[Done]:
    """Return the steps of a recording without visible error, in script order; count why others are left out."""
    repeats = {
        id(after)
        for before, after in pairwise(done_in_order(recording))
        if actions[before.description] == actions[after.description]
    }
    steps = []
    for place, (entry, (why, example)) in enumerate(zip(recording.entries, examples(recording), strict=True)):
        if example is None or example["mistake"]:
            left_out[why or WITH_ERRORS] += 1
            continue
        verb, noun = actions[entry.description]
        steps.append(Done(recording.recording_id, place, entry, verb, noun, id(entry) in repeats))
    return steps


class OtherSteps:
    """All steps of a part by verb and noun, to draw a step that differs from a given one."""

    def __init__(
        self, steps: Iterable[Done], recordings: Iterable[AnnotatedRecording], actions: Mapping[str, Deed]
    ) -> None:
        """Index the steps, and the first time of each action in each recording."""
        self._by: dict[tuple[str | None, str | None], list[Done]] = defaultdict(list)
        for step in steps:
            if step.noun is not None:
                for key in ((step.verb, None), (None, step.noun), (None, None)):
                    self._by[key].append(step)
        self._first_s: dict[Deed, dict[str, float]] = defaultdict(dict)
        for recording in recordings:
            for entry in reversed(done_in_order(recording)):  # the earliest is stored last
                self._first_s[actions[entry.description]][recording.recording_id] = float(entry.start_s)

    def draw(self, step: Done, kind: str, chance: random.Random, *, corrected: bool) -> Done | None:
        """Return a step of another recording for a kind of mistake; None if there is none."""
        if step.noun is None or (kind == OTHER_VERB and step.verb in ALIKE):
            return None
        pool = self._by[step.verb if kind == OTHER_NOUN else None, step.noun if kind == OTHER_VERB else None]
        start = chance.randrange(len(pool)) if pool else 0
        first_s = self._first_s[step.verb, step.noun]
        suitable = (
            other
            for other in chain(pool[start:], pool[:start])
            if other.recording != step.recording
            and kind == KINDS.get((other.verb == step.verb, other.noun == step.noun))
            and not (corrected and first_s.get(other.recording, other.entry.end_s) < other.entry.end_s)
        )
        return next(suitable, None)


def boundary_examples(
    recordings: Iterable[AnnotatedRecording],
    actions: Mapping[str, Deed],
    part_of: Mapping[str, str],
    seed: int,
    *,
    corrected: bool = False,
) -> tuple[list[BoundaryExample], Counter[str], int]:
    """Return the examples, why steps are left out, and the number of steps that repeat the previous step.

    `actions` are verb and noun of each text. Mistakes are drawn from recordings of the same part. As published,
    another step is shown at a moment inside it and repeated steps stay; `corrected`: it is shown at its end, in a
    recording where the action of this step was not done before, and repeated steps are left out.
    """
    left_out: Counter[str] = Counter()
    parts: dict[str, list[AnnotatedRecording]] = defaultdict(list)
    for recording in recordings:
        parts[part_of.get(recording.recording_id, "")].append(recording)
    rows: list[BoundaryExample] = []
    repeated = 0
    for of_part in parts.values():
        steps = [step for recording in of_part for step in done_steps(recording, actions, left_out)]
        others = OtherSteps(steps, of_part, actions)
        for step in steps:
            repeated += step.repeats
            if step.repeats and corrected:
                left_out[REPEATED] += 1
            else:
                rows += _rows(step, others, seed, corrected=corrected)
    return rows, left_out, repeated


def balanced(
    rows: Sequence[BoundaryExample], part_of: Mapping[str, str], most: int, seed: int
) -> list[BoundaryExample]:
    """Draw as many successes as mistakes of each part, at most `most` of each, kinds of mistakes in turn."""
    parts: dict[str, list[BoundaryExample]] = defaultdict(list)
    for row in rows:
        parts[part_of.get(recording_of(row), "")].append(row)
    kept: set[str] = set()
    for part, of_part in parts.items():
        shuffled = random.Random(f"{seed} {part}").sample(of_part, len(of_part))
        kinds: dict[str | None, list[BoundaryExample]] = defaultdict(list)
        for row in shuffled:
            kinds[row["mistake_type"]].append(row)
        successes = kinds.pop(None, [])
        turns = zip_longest(*(kinds[kind] for kind in sorted(kinds, key=str)))
        mistakes = [row for row in chain.from_iterable(turns) if row is not None]
        count = min(most, len(successes), len(mistakes))
        kept |= {row["example_id"] for row in (*successes[:count], *mistakes[:count])}
    return [row for row in rows if row["example_id"] in kept]


def _rows(step: Done, others: OtherSteps, seed: int, *, corrected: bool) -> Iterable[BoundaryExample]:
    start_s, end_s = float(step.entry.start_s), float(step.entry.end_s)
    shown: list[tuple[str, str | None, str, float]] = [("pos", None, step.recording, end_s)]
    if step.entry.end_s - step.entry.start_s >= INCOMPLETE_S:
        shown.append(("hardneg", INCOMPLETE, step.recording, start_s))
    for kind in KINDS.values():
        chance = random.Random(f"{seed} {step.recording} {step.place} {kind}")
        if (other := others.draw(step, kind, chance, corrected=corrected)) is not None:
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
    """Return a line for each known fault of the published program."""
    lines = [
        "steps of other recordings are shown at a moment inside them, as published (the time of narration); "
        "--corrected takes their end"
    ]
    if repeated:
        lines.append(f"{repeated} steps repeat the previous step, as published; --corrected leaves them out")
    if frames:
        lines += [
            "only black frames are dark, as published (0.2 of 255); --corrected takes 0.2 of full brightness",
            "one frame is taken of each moment, as published; --corrected takes the sharpest of five",
        ]
    return lines
