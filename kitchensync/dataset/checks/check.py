"""Read a data set again as a stranger would, and say what is not as it must be."""

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

MATTERS = (check_entries, check_lengths, check_graphs, check_splits, check_cards, check_films, check_times)
_MOST_BYTES = 256 << 20
"""Of all texts together."""


def check(
    folder: Path,
    *,
    words: frozenset[str] = frozenset(),
    published: Path | None = None,
    tell: Tell = lambda *_: None,
) -> ReleaseFaults:
    """Check everything of a data set; `words` must stand in none of its files, `tell` hears of each film.

    Known flaws of published sets are warnings in files that came from one unchanged: those that are the same in
    `published`, or all where a data set is no lab's own and nobody names the published one.
    """
    found = ReleaseFaults()
    sums = check_layout(folder, found)
    texts = _texts(folder, found)
    is_own = (folder / BESIDE).exists()

    def is_taken_over(name: str) -> bool:
        if published is None:
            return not is_own
        return (published / name).is_file() and (published / name).read_bytes() == (
            folder / name
        ).read_bytes()

    try:
        annotations = parse_annotations(texts)
    except (RecipeError, KeyError) as error:
        found.differs("annotation_json", "", "the published form", str(error))
    else:
        checked = DataSetUnderCheck(folder, sums, texts, annotations, is_own, is_taken_over, found, tell)
        for matter in MATTERS:
            matter(checked)
    check_private(folder, words, found)
    return found


def _texts(folder: Path, found: ReleaseFaults) -> dict[str, str]:
    texts, left = dict[str, str](), _MOST_BYTES
    for path in sorted(path for name in TEXTS for path in (folder / name).glob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        try:
            texts[name] = read_text(path, most_bytes=min(left, MAX_ANNOTATION_BYTES))
            left -= path.stat().st_size
        except RecipeError as error:
            found.differs(name, "", "a text", str(error))
    return texts
