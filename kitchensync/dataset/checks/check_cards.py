"""Cards and links: they say what is there."""

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
"""Lines of what people say, which are of no recording."""
CROISSANT, README = "croissant.json", "README.md"
_MOST_CARD_BYTES = 64 << 20


def check_cards(checked: DataSetUnderCheck) -> None:
    """Check that each card is there and agrees with the files."""
    for name in (card for card in CARDS if "." in card):
        if not (checked.folder / name).is_file():
            checked.found.differs(name, "", "the file", "no file")
    if not any(LICENCES.fullmatch(path.name) for path in checked.folder.iterdir()):
        checked.found.differs("LICENSE", "", "the file", "no file")
    readme = checked.folder / README
    if readme.is_file() and not read_bytes(readme, most_bytes=_MOST_CARD_BYTES).startswith(b"---\n"):
        checked.found.differs(README, "line 1", "---, the head that the hub reads", "another line")
    _croissant(checked, checked.folder / CROISSANT)
    if LINKS in checked.texts:
        _links(checked)
    elif checked.is_own:
        checked.found.differs(LINKS, "", "the file", "no file")
    _beside(checked, checked.folder / BESIDE)


def _croissant(checked: DataSetUnderCheck, path: Path) -> None:
    if not path.is_file():
        return
    try:
        listed: Any = parse_json(read_bytes(path, most_bytes=_MOST_CARD_BYTES), most_bytes=_MOST_CARD_BYTES)[
            "distribution"
        ]
        stated = {one["contentUrl"]: one["sha256"] for one in listed}
    except (ValueError, KeyError, TypeError) as error:
        checked.found.differs(CROISSANT, "", "a Croissant card", str(error)[:80])
        return
    for name, want in stated.items():
        got = checked.sums.get(name, f"no line in {SUMS}") if isinstance(name, str) else "no name"
        if got != want:
            checked.found.differs(CROISSANT, str(name), want, got)


def _links(checked: DataSetUnderCheck) -> None:
    """Compare the links of each recording with the files: each kind that is there has a key, no other has."""
    try:
        links: dict[str, dict[str, Any]] = parse_json(checked.texts[LINKS], most_bytes=MAX_ANNOTATION_BYTES)
        stated = {
            (one, kind): path
            for one, kinds in links.items()
            for kind, path in kinds.items()
            if path is not True
        }
    except (ValueError, AttributeError) as error:
        checked.found.differs(LINKS, "", "recording -> kind -> address", str(error)[:80])
        return
    for one in sorted(set(links) - set(checked.ids)):
        checked.found.differs(LINKS, one, "a recording of this data set", "none of it")
    if not checked.is_own:
        return  # addresses of elsewhere
    for one in sorted(set(checked.ids) - set(links)):
        checked.found.differs(LINKS, one, "its links", "none")
    for (one, kind), path in stated.items():
        if not isinstance(path, str) or not (checked.folder / path).exists():
            checked.found.differs(LINKS, f"{one} {kind}", str(path), "no file")
    named = {path for path in stated.values() if isinstance(path, str)}
    there = {path.relative_to(checked.folder).as_posix() for path in media_files(checked.folder)}
    for name in sorted(there - named):
        checked.found.differs(LINKS, name, "a key for every file", "none")


def _beside(checked: DataSetUnderCheck, path: Path) -> None:
    """Check that each line is of a recording and entry, and each recording has its line."""
    if not path.is_file():
        return
    counts = {one.recording_id: len(one.entries) for one in checked.annotations.recordings}
    seen: set[tuple[str, int]] = set()
    facts: dict[str, dict[str, Any]] = {}
    lines = read_bytes(path, most_bytes=MAX_ANNOTATION_BYTES).decode(errors="replace").splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            said = parse_fact(line)
            if said["kind"] in STATED:
                continue
            key = (said["recording_id"], said["entry"] if said["kind"] == "entry" else -1)
            if not -1 <= key[1] < counts[key[0]]:
                raise ValueError(f"no entry {key[1]}")
        except (ValueError, KeyError, TypeError) as error:
            checked.found.differs(BESIDE, f"line {number}", "a line of a recording or entry", str(error)[:80])
            continue
        seen.add(key)
        facts |= {key[0]: said} if key[1] < 0 else {}
    for one, count in counts.items():
        if missing := [place for place in range(-1, count) if (one, place) not in seen]:
            where = one if missing[0] < 0 else f"{one}[{missing[0]}]"
            checked.found.differs(BESIDE, where, "a line", "none")
    for one, lines in lacking_in(facts).items():
        checked.found.warnings += [f"{BESIDE} {one}: {line}" for line in lines]
