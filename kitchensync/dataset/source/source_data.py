"""The input of exports: a folder in the published form, or own recordings as they would be released."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from kitchensync.dataset.source.data_set import annotations_of, graph_of
from kitchensync.dataset.source.data_set_folder import DataSet, read_data_set
from kitchensync.dataset.source.numbering import Numbering
from kitchensync.dataset.source.own_members import nothing_releasable, read_member
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording
from kitchensync.task_graphs.formats.captaincook4d import parse_captaincook4d
from kitchensync.task_graphs.formats.graph_files import read_task_graphs
from kitchensync.task_graphs.model import Graph

if TYPE_CHECKING:
    from kitchensync.dataset.source.own_members import LeftOut, Ready
    from kitchensync.dataset.source.own_recording import OwnRecording


@dataclass(frozen=True)
class SourceData:
    """A data set with its folder, or with its own recordings by id and those that are left out."""

    data: DataSet
    folder: Path | None = None
    own: dict[str, Ready] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    without_consent: str = ""

    @property
    def by_recipe(self) -> list[AnnotatedRecording]:
        """The recordings; in own recordings a step id is the lowest node of the recipe with the step's text.

        Unlike numbers in order of appearance, these ids do not depend on the other recordings.
        """
        recordings = list(self.data.annotations.recordings)
        if self.folder:
            return recordings
        numbered = []
        for recording in recordings:
            lowest: dict[str, int] = {}
            for entry in recording.entries:
                assert entry.node is not None
                lowest[entry.description] = min(entry.node, lowest.get(entry.description, entry.node))
            entries = [replace(entry, step_id=lowest[entry.description]) for entry in recording.entries]
            numbered.append(replace(recording, entries=tuple(entries)))
        return numbered

    def open_own(self, recording: str) -> OwnRecording:
        """Open an own recording by its id in the data set."""
        from kitchensync.dataset.source.own_recording import OwnRecording

        return OwnRecording.open(self.own[recording].path, without_consent=self.without_consent)

    @property
    def warnings(self) -> list[str]:
        """A line for each recording that is left out or is used without consent."""
        lines = [f"left out: {row['recording']}: {row['why']}" for row in self.left_out]
        used = [ready for ready in self.own.values() if ready.not_agreed]
        return lines + [f"used without consent: {ready.path.name}: {ready.not_agreed}" for ready in used]

    def graphs(self) -> dict[str, Graph]:
        """Return the recipes' graphs by the stem of their files. Raises BadGraph."""
        if self.folder is not None:
            return read_task_graphs(self.folder)
        members = [ready.member for ready in self.own.values()]
        texts = {member.annotated.graph_stem: graph_of(member.cooked) for member in members}
        return {stem: parse_captaincook4d(text, name=stem) for stem, text in texts.items()}

    def other_rates(self, fps: Fraction) -> list[str]:
        """Return a line for each video whose frame rate differs from `fps` by more than 0.1 %."""
        return [
            f"the video of {name} has {ready.fps} frames a second, not {fps}; give --fps"
            for name, ready in self.own.items()
            if abs(ready.fps / fps - 1) > Fraction(1, 1000)
        ]


def data_of_folder(folder: Path) -> SourceData:
    """Read a folder in the published form. Raises BadGraph."""
    return SourceData(read_data_set(folder), folder)


def data_of_recordings(paths: Iterable[Path], *, without_consent: str = "") -> SourceData:
    """Read own recordings, one at a time, with their names as ids.

    With a reason in `without_consent`, recordings without consent are read too. Raises NotReleasable if none is left.
    """
    left_out: list[LeftOut] = []
    ids, own = Numbering(), {}
    for path in paths:
        if ready := read_member(path, ids, left_out, without_consent=without_consent):
            annotated = replace(ready.member.annotated, recording_id=path.name)
            member = replace(ready.member, published_id=path.name, annotated=annotated)
            own[path.name] = replace(ready, member=member)
    if not own:
        raise nothing_releasable(left_out)
    members = [ready.member for ready in own.values()]
    lengths = {member.published_id: member.cooked.film_s for member in members}
    facts = {member.published_id: dict(member.cooked.facts) for member in members}
    data = DataSet(annotations_of(members, ids), lengths, True, facts)
    return SourceData(data, None, own, left_out, without_consent)
