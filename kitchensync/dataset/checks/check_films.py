"""Check that videos decode, have the stated length, and hold no location or serial number; check their tables."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import av

from kitchensync.dataset.checks.check_entries import SLACK_S, film_lengths
from kitchensync.dataset.checks.check_layout import media_files
from kitchensync.dataset.checks.release_faults import DataSetUnderCheck, overlapping_blocks
from kitchensync.dataset.data_set_cards.verify_data_set import (
    BAD_FILE,
    ERROR_ROWS,
    FAIL,
    LINKS,
    UNCOVERED,
    UNPROVEN,
    RecordingFindings,
    check_media,
    read_facts,
    read_links,
    wrong_errors,
)
from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.files.media import open_media

NAME = re.compile(r"([0-9]+_[0-9]+)(_.+)?")
PLACES = (b"GPS5l", b"GPS9?", b"GPSUU\x10")
"""First bytes of a GoPro's GPS records: key and type."""
TELLING = re.compile(r"location|gps|serial|xyz", re.IGNORECASE)
"""Names of metadata that identify the place or the camera."""


def check_films(checked: DataSetUnderCheck) -> None:
    """Decode every video and compare its length with the tables."""
    lengths = film_lengths(checked)
    paths = media_files(checked.folder)
    sizes = [path.stat().st_size for path in paths]
    for number, path in enumerate(paths):
        name = path.relative_to(checked.folder).as_posix()
        checked.tell(name, sum(sizes[:number]), sum(sizes))
        match = NAME.fullmatch(path.stem)
        if match is None or match[1] not in checked.ids:
            checked.faults.differs(name, "", "a recording of this data set", "none of it")
        elif path.suffix == ".mp4":
            _film(checked, name, path, lengths.get(match[1]))


def _film(checked: DataSetUnderCheck, name: str, path: Path, stated_s: float | None) -> None:
    try:
        with open_media(path).container() as film:
            names = {key for stream in film.streams for key in stream.metadata} | set(film.metadata)
            count = sum(1 for _ in film.decode(video=0))
            rate = Fraction(film.streams.video[0].average_rate or 1)
    except (av.FFmpegError, SensorError, IndexError, ValueError) as error:
        checked.faults.differs(name, "", "a film that decodes", str(error)[:80])
        return
    if telling := sorted(key for key in names if TELLING.search(key)):
        checked.faults.names.append({"file": name, "found": telling[0]})
    if any(mark in block for block in overlapping_blocks(path, 8) for mark in PLACES):
        checked.faults.names.append({"file": name, "found": "a GPS record"})
    film_s = float(count / rate)
    if stated_s is None:
        checked.faults.differs(name, f"{count} pictures", "a length in video_information.csv", "none")
    elif abs(film_s - stated_s) > SLACK_S and "/gopro/" in name:
        checked.faults.differs(name, f"{count} pictures", f"{stated_s} s", f"{film_s:.2f} s")


def check_times(checked: DataSetUnderCheck) -> None:
    """Check the videos and tables of every recording of a lab's own data set.

    An uncovered span is a warning, because the data set reports it correctly. Files that were not released are not
    checked.
    """
    if not checked.is_own:
        return
    try:
        links = read_links(checked.folder)
    except BAD_FILE:
        return  # reported by check_cards
    for why in wrong_errors(checked.folder, checked.ids):
        checked.faults.differs(ERROR_ROWS, "", "errors of this data set, with times of its films", why)
    facts = read_facts(checked.folder)
    for recording_id, kinds in links.items():
        proven = RecordingFindings(recording_id)
        check_media(checked.folder, kinds, facts.get(recording_id, {}), proven, partial=True)
        for status, why, kind in proven.findings:
            if kind == UNPROVEN:
                continue
            file = kinds.get(why.partition(":")[0], LINKS)
            if status == FAIL and kind != UNCOVERED:
                checked.faults.differs(file, recording_id, "times that hold", why)
            else:
                checked.faults.warnings.append(f"{recording_id}: {why}")
