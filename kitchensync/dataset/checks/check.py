"""Check a data set as a receiver would, and report all faults."""

from __future__ import annotations

from pathlib import Path

from kitchensync.dataset.checks.check_cards import check_cards
from kitchensync.dataset.checks.check_entries import check_entries, check_lengths
from kitchensync.dataset.checks.check_films import check_films, check_times
from kitchensync.dataset.checks.check_graphs import check_graphs
from kitchensync.dataset.checks.check_layout import TEXTS, check_layout
from kitchensync.dataset.checks.check_private import check_private
from kitchensync.dataset.checks.check_splits import check_splits
from kitchensync.dataset.checks.release_faults import DataSetUnderCheck, ReleaseFaults, Tell
from kitchensync.dataset.source.data_set import BESIDE
from kitchensync.task_graphs.errors import RecipeError
from kitchensync.task_graphs.formats.annotations import parse_annotations
from kitchensync.task_graphs.formats.graph_files import MAX_ANNOTATION_BYTES, read_text

CHECKS = (check_entries, check_lengths, check_graphs, check_splits, check_cards, check_films, check_times)
_MOST_BYTES = 256 << 20
"""Limit of the size of all texts together."""


def check(
    folder: Path,
    *,
    words: frozenset[str] = frozenset(),
    published: Path | None = None,
    tell: Tell = lambda *_: None,
) -> ReleaseFaults:
    """Check a data set; `words` must be in none of its files, `tell` is called for each video.

    Known flaws of published sets are only warnings in files that were imported unchanged from one: files that are
    the same in `published`, or, without `published`, all files of a data set that is not a lab's own.
    """
    faults = ReleaseFaults()
    sums = check_layout(folder, faults)
    texts = _texts(folder, faults)
    is_own = (folder / BESIDE).exists()

    def is_imported(name: str) -> bool:
        if published is None:
            return not is_own
        return (published / name).is_file() and (published / name).read_bytes() == (
            folder / name
        ).read_bytes()

    try:
        annotations = parse_annotations(texts)
    except (RecipeError, KeyError) as error:
        faults.differs("annotation_json", "", "the published form", str(error))
    else:
        checked = DataSetUnderCheck(folder, sums, texts, annotations, is_own, is_imported, faults, tell)
        for run_check in CHECKS:
            run_check(checked)
    check_private(folder, words, faults)
    return faults


def _texts(folder: Path, faults: ReleaseFaults) -> dict[str, str]:
    texts, remaining_bytes = dict[str, str](), _MOST_BYTES
    for path in sorted(path for name in TEXTS for path in (folder / name).glob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        try:
            texts[name] = read_text(path, most_bytes=min(remaining_bytes, MAX_ANNOTATION_BYTES))
            remaining_bytes -= path.stat().st_size
        except RecipeError as error:
            faults.differs(name, "", "a text", str(error))
    return texts
