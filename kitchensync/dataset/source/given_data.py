"""What tables are made of: a folder in the published form, or a lab's own recordings as they would be released."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from kitchensync.dataset.source.data_set import annotations_of, graph_of
from kitchensync.dataset.source.data_set_folder import DataSet, read_data_set
from kitchensync.dataset.source.numbering import Numbering
from kitchensync.dataset.source.own_members import none_may, read_member
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording
from kitchensync.task_graphs.formats.captaincook4d import parse_captaincook4d
from kitchensync.task_graphs.formats.graph_files import read_task_graphs
from kitchensync.task_graphs.model import Graph

if TYPE_CHECKING:
    from kitchensync.dataset.source.own_members import LeftOut, Ready
    from kitchensync.dataset.source.own_recording import OwnRecording


@dataclass(frozen=True)
class GivenData:
    """A data set and its folder; of own recordings instead the recordings by id, and those that are left out."""

    data: DataSet
    folder: Path | None = None
    own: dict[str, Ready] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    without_consent: str = ""

    @property
    def by_recipe(self) -> list[AnnotatedRecording]:
        """The recordings; the steps of own ones have the numbers of their recipes.

        Such a number is the lowest node of the recipe's graph with that text: it depends on nothing else.
        """
        recordings = list(self.data.annotations.recordings)
        return recordings if self.folder else [_by_recipe(one) for one in recordings]

    def open_own(self, recording: str) -> OwnRecording:
        """Open an own recording by its id in the data set."""
        from kitchensync.dataset.source.own_recording import OwnRecording

        return OwnRecording.open(self.own[recording].path, without_consent=self.without_consent)

    @property
    def warnings(self) -> list[str]:
        """Report which recordings are left out, and which are used without consent, a line each."""
        lines = [f"left out: {one['recording']}: {one['why']}" for one in self.left_out]
        used = [one for one in self.own.values() if one.not_agreed]
        return lines + [f"used without consent: {one.path.name}: {one.not_agreed}" for one in used]

    def graphs(self) -> dict[str, Graph]:
        """Return the recipes' graphs by the stem of their files. Raises BadGraph."""
        if self.folder is not None:
            return read_task_graphs(self.folder)
        members = [one.member for one in self.own.values()]
        texts = {member.annotated.graph_stem: graph_of(member.cooked) for member in members}
        return {stem: parse_captaincook4d(text, name=stem) for stem, text in texts.items()}

    def other_rates(self, fps: Fraction) -> list[str]:
        """Report which films have clearly more or fewer pictures a second than `fps`, a line each."""
        return [
            f"the film of {one} has {ready.fps} pictures a second, not {fps}; give --fps"
            for one, ready in self.own.items()
            if abs(ready.fps / fps - 1) > Fraction(1, 1000)
        ]


def _by_recipe(one: AnnotatedRecording) -> AnnotatedRecording:
    lowest: dict[str, int] = {}
    for entry in one.entries:
        assert entry.node is not None
        lowest[entry.description] = min(entry.node, lowest.get(entry.description, entry.node))
    entries = (replace(entry, step_id=lowest[entry.description]) for entry in one.entries)
    return replace(one, entries=tuple(entries))


def given_folder(folder: Path) -> GivenData:
    """Read a folder in the published form. Raises BadGraph."""
    return GivenData(read_data_set(folder), folder)


def given_recordings(paths: Iterable[Path], *, without_consent: str = "") -> GivenData:
    """Read own recordings, one at a time, under their own names.

    `without_consent` is why those are read too to which nobody agreed. Raises NotReleasable when none may be used.
    """
    left_out: list[LeftOut] = []
    ids, own = Numbering(), {}
    for path in paths:
        if one := read_member(path, ids, left_out, without_consent=without_consent):
            annotated = replace(one.member.annotated, recording_id=path.name)
            member = replace(one.member, published_id=path.name, annotated=annotated)
            own[path.name] = replace(one, member=member)
    if not own:
        raise none_may(left_out)
    members = [one.member for one in own.values()]
    lengths = {member.published_id: member.cooked.film_s for member in members}
    facts = {member.published_id: dict(member.cooked.facts) for member in members}
    data = DataSet(annotations_of(members, ids), lengths, True, facts)
    return GivenData(data, None, own, left_out, without_consent)
