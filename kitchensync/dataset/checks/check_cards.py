"""Check that the cards and links of a data set agree with its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kitchensync.dataset.checks.check_layout import CARDS, LICENCES, media_files
from kitchensync.dataset.checks.release_faults import DataSetUnderCheck
from kitchensync.dataset.source.data_set import BESIDE, LINKS
from kitchensync.dataset.source.data_set_folder import lacking_in, parse_fact
from kitchensync.dataset.source.sums import SUMS
from kitchensync.shell.untrusted_json import parse_json
from kitchensync.task_graphs.formats.graph_files import MAX_ANNOTATION_BYTES, read_bytes

STATED = ("recipe", "participants")
"""Kinds of lines that belong to no recording."""
CROISSANT, README = "croissant.json", "README.md"
_MOST_CARD_BYTES = 64 << 20  # load.py and verify.py of a data set read no larger text


def check_cards(checked: DataSetUnderCheck) -> None:
    """Check that each card exists and agrees with the files."""
    for name in (card for card in CARDS if "." in card):
        if not (checked.folder / name).is_file():
            checked.faults.differs(name, "", "the file", "no file")
    if not any(LICENCES.fullmatch(path.name) for path in checked.folder.iterdir()):
        checked.faults.differs("LICENSE", "", "the file", "no file")
    readme = checked.folder / README
    if readme.is_file() and not read_bytes(readme, most_bytes=_MOST_CARD_BYTES).startswith(b"---\n"):
        checked.faults.differs(README, "line 1", "---, the head that the hub reads", "another line")
    _croissant(checked, checked.folder / CROISSANT)
    if LINKS in checked.texts:
        _links(checked)
    elif checked.is_own:
        checked.faults.differs(LINKS, "", "the file", "no file")
    _facts(checked, checked.folder / BESIDE)


def _croissant(checked: DataSetUnderCheck, path: Path) -> None:
    if not path.is_file():
        return
    try:
        listed: Any = parse_json(read_bytes(path, most_bytes=_MOST_CARD_BYTES), most_bytes=_MOST_CARD_BYTES)[
            "distribution"
        ]
        hashes = {file["contentUrl"]: file["sha256"] for file in listed}
    except (ValueError, KeyError, TypeError) as error:
        checked.faults.differs(CROISSANT, "", "a Croissant card", str(error)[:80])
        return
    for name, want in hashes.items():
        got = checked.sums.get(name, f"no line in {SUMS}") if isinstance(name, str) else "no name"
        if got != want:
            checked.faults.differs(CROISSANT, str(name), want, got)


def _links(checked: DataSetUnderCheck) -> None:
    """Compare the links of each recording with the files: every file has a key, every key has a file."""
    try:
        links: dict[str, dict[str, Any]] = parse_json(checked.texts[LINKS], most_bytes=MAX_ANNOTATION_BYTES)
        paths = {
            (recording, kind): path
            for recording, kinds in links.items()
            for kind, path in kinds.items()
            if path is not True
        }
    except (ValueError, AttributeError) as error:
        checked.faults.differs(LINKS, "", "recording -> kind -> address", str(error)[:80])
        return
    for recording in sorted(set(links) - set(checked.ids)):
        checked.faults.differs(LINKS, recording, "a recording of this data set", "none of it")
    if not checked.is_own:
        return  # its links are web addresses
    for recording in sorted(set(checked.ids) - set(links)):
        checked.faults.differs(LINKS, recording, "its links", "none")
    for (recording, kind), path in paths.items():
        if not isinstance(path, str) or not (checked.folder / path).exists():
            checked.faults.differs(LINKS, f"{recording} {kind}", str(path), "no file")
    linked = {path for path in paths.values() if isinstance(path, str)}
    files = {path.relative_to(checked.folder).as_posix() for path in media_files(checked.folder)}
    for name in sorted(files - linked):
        checked.faults.differs(LINKS, name, "a key for every file", "none")


def _facts(checked: DataSetUnderCheck, path: Path) -> None:
    """Check that each line belongs to a recording or an entry, and that each of them has a line."""
    if not path.is_file():
        return
    counts = {recording.recording_id: len(recording.entries) for recording in checked.annotations.recordings}
    keys: set[tuple[str, int]] = set()  # recording and entry, -1 for the line of the recording
    facts: dict[str, dict[str, Any]] = {}
    lines = read_bytes(path, most_bytes=MAX_ANNOTATION_BYTES).decode(errors="replace").splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            fact = parse_fact(line)
            if fact["kind"] in STATED:
                continue
            recording, entry = fact["recording_id"], fact["entry"] if fact["kind"] == "entry" else -1
            if not -1 <= entry < counts[recording]:
                raise ValueError(f"no entry {entry}")
        except (ValueError, KeyError, TypeError) as error:
            checked.faults.differs(
                BESIDE, f"line {number}", "a line of a recording or entry", str(error)[:80]
            )
            continue
        keys.add((recording, entry))
        if entry < 0:
            facts[recording] = fact
    for recording, count in counts.items():
        if missing := [entry for entry in range(-1, count) if (recording, entry) not in keys]:
            where = recording if missing[0] < 0 else f"{recording}[{missing[0]}]"
            checked.faults.differs(BESIDE, where, "a line", "none")
    for recording, lines in lacking_in(facts).items():
        checked.faults.warnings += [f"{BESIDE} {recording}: {line}" for line in lines]
