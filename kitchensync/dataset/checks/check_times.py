"""Check times of videos and tables, coverage and alignment with the code of a data set's own `verify.py`."""

from __future__ import annotations

from kitchensync.dataset.checks.release_faults import DataSetUnderCheck
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


def check_times(checked: DataSetUnderCheck) -> None:
    """Check the videos and tables of every recording of a lab's own data set.

    An uncovered span is a warning, because the data set reports it correctly. Files that were not released, and so
    cannot be checked, are no finding.
    """
    if not checked.is_own:
        return
    try:
        links = read_links(checked.folder)
    except BAD_FILE:
        return  # see check_cards.py
    for why in wrong_errors(checked.folder, checked.ids):
        checked.found.differs(ERROR_ROWS, "", "errors of this data set, with times of its films", why)
    facts = read_facts(checked.folder)
    for recording_id, kinds in links.items():
        proven = RecordingFindings(recording_id)
        check_media(checked.folder, kinds, facts.get(recording_id, {}), proven, partial=True)
        for status, why, kind in proven.findings:
            if kind == UNPROVEN:
                continue
            file = kinds.get(why.partition(":")[0], LINKS)
            if status == FAIL and kind != UNCOVERED:
                checked.found.differs(file, recording_id, "times that hold", why)
            else:
                checked.found.warnings.append(f"{recording_id}: {why}")
