"""README.md of a data set with the YAML head of the Hugging Face hub, and LICENSE."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from textwrap import indent

from kitchensync.dataset.data_set_cards.card_facts import NOT_STATED, Facts
from kitchensync.dataset.data_set_cards.data_dictionary import CONVENTIONS, PLACE
from kitchensync.dataset.source.data_set import ERROR_ROWS

HUB_LICENCES = (
    "apache-2.0", "mit", "cc0-1.0", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0", "cc-by-nd-4.0", "cc-by-nc-sa-4.0",
    "cc-by-nc-nd-4.0", "odbl", "bsd-3-clause", "gpl-3.0", "cdla-permissive-2.0", "cdla-sharing-1.0",
)  # fmt: skip
"""Licence names of the hub; any other licence is `other` there."""
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
ALWAYS = ("croissant.json", "index.html", "download.py", "SHA256SUMS")
PLACES = {
    "annotation_json/": "steps, errors and times, in seconds of the film",
    "annotation_csv/": "the same as tables",
    "task_graphs/": "which step must come before which",
    "data_splits/": "parts to train, validate and test with",
    "metadata/": "length of each film, kitchen and person by number, which files there are",
    "captain_cook_4d/gopro/": "films of the camera",
    "captain_cook_4d/hololens/sync/": "data of the headset on the frames of its camera: `.npz` files of plain "
    "arrays, no pickles, with `capture_ns` and the bound of the alignment of each frame; where tracking "
    "was lost, `head_tracked` is false (in `spatial_pose/` bit 1 of `valid` is not set) and the pose is NaN",
    "captain_cook_4d/gopro/motion/": "the camera's own gyroscope, on the same clock as the headset's",
    "calibration/": "constants of the headset's sensors, and what its clock is in UTC",
    "errors.jsonl": "a row for each error: when, on purpose or by accident, who noticed it, what corrected it",
    "kitchensync.jsonl": "what the published form cannot say, a line for each recording and entry",
    "croissant.json": "this card for machines, with the fields for responsible AI",
    "index.html": "a page with a picture of each recording",
    "download.py": "fetches the data set from its address, goes on where it stopped, proves every file",
    "load.py": "reads it from Python: needs NumPy and PyAV only",
    "verify.py": "proves checksums, coverage, tracking and alignment anew: needs NumPy and PyAV only",
    "SHA256SUMS": "checksums of all files",
}
ERROR_FIELDS = {
    "recording, error_id": "id of the recording and of the error",
    "node, step": "node of the step in the task graph, and its label",
    "categories": "published names of the categories",
    "description": "what was done instead, in words",
    "planned": "whether a script planned it",
    "intent": "`on_purpose` or `by_accident`",
    "noticed": "`by_the_cook`, `by_somebody_else` or `not`",
    "at_s, end_s": "from when to when it happened, seconds of the film",
    "point_of_no_return_s": "from when on it could not be put right",
    "noticed_s, corrected_s": "when it was noticed, and when it was corrected",
    "corrected_by": "`error_id` or node of what corrected it, or `none`",
    "reported_s": "when it was entered on the tablet",
    "source": "`ruled` where annotators differed, `marked` where they agreed, or `entered` by the cook",
    "bound_s": "how far `at_s` may be off (95 %)",
}
READERS = ("load.py", "verify.py")
"""Programs in data sets with recordings; older data sets have none."""
EXAMPLE = (
    ("", "from load import open_data_set\n"),
    ("", 'rec = open_data_set()["{}"]'),
    ("", 'start, end = rec.steps[0]["start_time"], rec.steps[0]["end_time"]'),
    ("captain_cook_4d/gopro/resolution_", "picture = rec.film.at(max(start, 0))"),
    (
        "captain_cook_4d/hololens/sync/pv/",
        'both = rec.at(max(start, 0))["film"], rec.at(max(start, 0))["pv"]',
    ),
    ("captain_cook_4d/hololens/sync/imu_gyroscope/", "turning = rec.gyroscope.sample([end, end + 0.01])"),
)
"""(prefix, line) of an example; a line is used if the data set has files with the prefix."""


def as_readme(facts: Facts) -> str:
    """Return the text of README.md."""
    # Texts of the YAML head are written as JSON, which is valid YAML.
    entries = sum(len(recording.entries) for recording in facts.data.annotations.recordings)
    size = next((name for most, name in SIZES if entries < most), "n>1M")
    licence = facts.about.licence.lower()
    other = f"license: other\nlicense_name: {json.dumps(facts.about.licence or NOT_STATED)}"
    head = [
        "---",
        f"pretty_name: {json.dumps(facts.title)}",
        f"license: {licence}" if licence in HUB_LICENCES else other,
        "language:\n- en",
        "task_categories:\n- video-classification",
        "tags:\n- egocentric\n- procedural\n- cooking\n- errors\n- croissant",
        f"size_categories:\n- {size}",
        "configs:\n- config_name: steps\n  default: true\n  data_files: annotation_csv/step_annotations.csv",
        "---\n",
    ]
    return "\n".join([*head, f"# {facts.title}\n", facts.description + "\n", *_body(facts)])


def as_licence(facts: Facts) -> str:
    """Return the text of LICENSE: the name of the licence and the address of its text."""
    about = facts.about
    by = f" by {', '.join(about.creators)}" if about.creators else ""
    if not about.licence:
        return f"{facts.title}{by}\n\nNo licence was stated: all rights reserved.\n"
    return f"{facts.title}{by}\n\nLicence: {about.licence}\nText: https://spdx.org/licenses/{about.licence}.html\n"


def _body(facts: Facts) -> Iterator[str]:
    yield "## What is in it\n"
    yield "| place | holds |\n|---|---|"
    for place, holds in PLACES.items():
        is_there = any(name.startswith(place) for name in facts.hashes)
        if is_there or place in ALWAYS or (place in READERS and facts.holds_recordings):
            yield f"| `{place}` | {holds} |"
    if any(name.endswith(".npz") for name in facts.hashes):
        yield f"\n## Conventions\n\n`{PLACE}` has these, what every array means and the names of the joints.\n"
        yield from (f"- **{name}**: {text}" for name, text in CONVENTIONS.items())
    if ERROR_ROWS in facts.hashes:
        yield "\n## Errors\n"
        yield f"Fields of each row of `{ERROR_ROWS}`, null where a value is not known:\n"
        yield from (f"- `{names}`: {meaning}" for names, meaning in ERROR_FIELDS.items())
    yield "\n## Recordings\n"
    yield "| recipe | recordings | with errors | hours |\n|---|---|---|---|"
    yield from _recipes(facts)
    if timing := facts.timing():
        yield f"\n{timing} `verify.py` proves the first."
    yield from _gaps(facts)
    yield "\n## How it came about, and what to mind\n"
    for name, text in facts.rai().items():
        heading = re.sub(
            "[A-Z]", lambda letter: f" {letter[0].lower()}", name
        )  # dataUseCases: data use cases
        yield f"- **{heading}**: {text}"
    yield "\n## Use\n"
    yield "    python download.py ADDRESS FOLDER\n    sha256sum -c SHA256SUMS\n"
    if facts.holds_recordings:
        yield "Proved and read with `pip install numpy av`:\n\n    python verify.py\n"
        first = min(recording.recording_id for recording in facts.data.annotations.recordings)
        lines = [line for place, line in EXAMPLE if any(name.startswith(place) for name in facts.hashes)]
        yield indent("\n".join(lines).format(first), "    ") + "\n"
    yield "Steps that were not done have the times -1. Ids such as `1_26` are `<recipe>_<number>`: of each 50"
    yield "numbers the first 25 were meant as correct, the others had planned errors.\n"
    yield "## Licence and citation\n"
    yield f"Licence: {facts.about.licence or NOT_STATED}."
    if facts.about.creators:
        yield f"By {', '.join(facts.about.creators)}."
    if facts.about.contact:
        yield f"Contact, also for withdrawals: {facts.about.contact}"
    if facts.about.cite_as:
        yield f"\n    {facts.about.cite_as.strip()}".replace("\n", "\n    ")
    yield ""


def _recipes(facts: Facts) -> Iterator[str]:
    recordings = facts.data.annotations.recordings
    for name in sorted({recording.activity_name for recording in recordings}):
        of_recipe = [recording for recording in recordings if recording.activity_name == name]
        hours = sum(facts.data.lengths_s.get(r.recording_id, 0.0) for r in of_recipe) / 3600
        with_errors = sum(recording.is_error for recording in of_recipe)
        cell = name.replace("|", "\\|")
        yield f"| {cell} | {len(of_recipe)} | {with_errors} | {hours:.2f} |"


def _gaps(facts: Facts) -> Iterator[str]:
    """Yield lines about absent kinds, gaps and privacy pauses."""
    if absent := facts.absent():
        yield "\nAbsent, and why:\n"
        for kind, reasons in sorted(absent.items()):
            listed = "; ".join(f"{why} ({count} recordings)" for why, count in sorted(reasons.items()))
            yield f"- `{kind}`: {listed}"
    if lacking := facts.gaps():
        yield "\nLacking, in time of the film; steps are counted from 1 as in `step_annotations`:\n"
        yield from (f"- `{name}`: {'; '.join(lines)}" for name, lines in lacking.items())
    spans = {
        name: [f"{start:.1f} to {end:.1f}" for start, end in line.get("hidden_s", []) if start < end]
        for name, line in facts.data.facts.items()
    }
    if facts.holds_recordings and any(spans.values()):
        yield "\nPrivacy pauses, in seconds of the film; its pictures are black there, other data is left out:\n"
        for name, listed_spans in spans.items():
            if listed_spans:
                yield f"- `{name}`: {', '.join(listed_spans)}"
