"""A lab's own recording, read from its folder: what was cooked, by whom, and where that is in the camera's film."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import numpy as np
import numpy.typing as npt

from kitchensync.operations.filed_log import read_log
from kitchensync.operations.session_state import Op, State
from kitchensync.reader.opened_recording import OpenedRecording
from kitchensync.sensors.gopro.files.card_names import group_clips
from kitchensync.storage.consent import Purpose
from kitchensync.storage.events import events_of
from kitchensync.storage.frame_capture_times import capture_times
from kitchensync.storage.life import why_aborted
from kitchensync.storage.manifest import Manifest
from kitchensync.storage.names import MADE_FROM
from kitchensync.storage.privacy import WRITERS, Pauses, in_pauses
from kitchensync.storage.reading.alignments import alignment_files, read_alignment
from kitchensync.storage.reading.camera_streams import film_of
from kitchensync.storage.recording_files.annotation_folder import AcceptedSteps, MarkedVideo, accepted_steps
from kitchensync.storage.recording_files.kept_session_card import is_on_card
from kitchensync.storage.timeline.film_times import FilmPlace, FilmTimes
from kitchensync.task_graphs.errors import RecipeError

if TYPE_CHECKING:
    from kitchensync.sensors.gopro.files.clip import Clip


class AlignmentRow(TypedDict):
    """How well a file of the film was aligned, in numbers (milliseconds) and in words."""

    film: str
    status: str
    gyroscopes_within_ms: float | None
    pictures_within_ms: float | None
    said: str


class NotReleasable(RecipeError):
    """A recording that cannot become part of a data set, with the reason."""


class NotSynchronized(NotReleasable):
    """A recording whose film has not been put on the clock yet."""


@dataclass(frozen=True)
class OwnRecording:
    """One recording that may be released; its camera's film is `clip`."""

    recording: OpenedRecording
    state: State
    operations: list[Op]

    @classmethod
    def open(
        cls, path: Path, *, without_consent: str = "", purpose: Purpose = Purpose.RELEASE_RAW
    ) -> OwnRecording:
        """Open a recording folder for a purpose; `without_consent` is why, where nobody agreed to it.

        Raises NotARecording, Withdrawn, NotPermitted, NotReleasable, BadAnnotations.
        """
        recording = OpenedRecording(path, purpose=purpose, without_consent=without_consent)
        manifest = recording.stored.manifest
        if manifest["state"] != "complete":
            raise NotReleasable(f"{path}: is not complete; end it, or run `kitchensync recover`")
        if (why := why_aborted(manifest)) and purpose != Purpose.LOOK:
            raise NotReleasable(f"{path}: it was aborted and shall not be used: {why}")
        if not manifest.get("uuid") and purpose != Purpose.LOOK:
            raise NotReleasable(f"{path}: recording.json has no uuid; restore it from a copy")
        if manifest.get(MADE_FROM) and purpose != Purpose.LOOK:
            raise NotReleasable(f"{path}: it was cut or replayed from another recording; use that one")
        operations, state = read_log(path)
        if state["recording"] is None:
            raise NotReleasable(f"{path}: no recipe was cooked in it, the tablet's log is empty")
        if state["withdrawn"] is not None:  # the manifest may not say so yet
            raise NotReleasable(f"{path}: the participant withdrew consent; it may not be used or shared")
        return cls(recording, state, operations)

    def __enter__(self) -> OwnRecording:
        """Return the open recording."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the files that are open."""
        self.recording.close()

    @property
    def manifest(self) -> Manifest:
        """The manifest as it was when the recording was opened."""
        return self.recording.stored.manifest

    @property
    def camera(self) -> str:
        """Name of the camera whose film the times are of; nothing where there is none."""
        return next((name for name, files in self.recording.stored.gopro_files.items() if files), "")

    def check_filmed(self) -> None:
        """Raise NotReleasable where no camera of ours filmed it."""
        kinds = {device["kind"] for device in self.manifest["devices"].values()}
        if not self.camera:
            if is_on_card(self.recording.path):
                raise NotReleasable("its video is on its way: it has not been copied from the camera yet")
            elsewhere = "its film was made elsewhere: nothing tells when the tablet was touched in it"
            none = "no camera filmed it: its times have no film to count in"
            raise NotReleasable(elsewhere if "video" in kinds else none)

    @property
    def others(self) -> list[str]:
        """What the published form has no place for: further clips, cameras and headsets, by name."""
        files, devices = self.recording.stored.gopro_files, self.manifest["devices"]
        shown = {chapter.path for chapter in self.clip.chapters} if self.camera else set()
        clips = [one.paths[0] for one in group_clips(files.get(self.camera, [])) if one.paths[0] not in shown]
        cameras = [name for name in files if files[name] and name != self.camera]
        headsets = [name for name, device in devices.items() if device["kind"] == "hololens"]
        headsets = [name for name in headsets if name != self.recording.stored.main_headset]
        return [*(f"{self.camera}/{path.name}" for path in clips), *cameras, *headsets]

    @property
    def film_s(self) -> float:
        """How long its film is, seconds: pictures divided by their rate."""
        return float(len(self.frames) / self.frames.fps)

    @cached_property
    def clip(self) -> Clip:
        """The camera's film: the clips that our shutter began, else the first one, all their chapters as one."""
        return film_of(
            self.recording.path, self.camera, self.recording.stored.gopro_files.get(self.camera, [])
        )

    @property
    def errors_planned(self) -> bool:
        """Return whether some error was planned before cooking, and not taken out again."""
        return any(error["planned"] and not error["removed"] for error in self.state["errors"].values())

    @cached_property
    def frames(self) -> FilmTimes:
        """When each picture of the film, at its constant rate, was taken."""
        return capture_times(self.recording.stored, self.camera, self.clip).shown(self.clip.even_frames)

    @cached_property
    def alignment(self) -> list[AlignmentRow]:
        """How well `sync` aligned each file of the film, in numbers and in words."""
        found = [read_alignment(path) for path in alignment_files(self.recording.path)]
        names = {f"{self.camera}/{chapter.path.name}" for chapter in self.clip.chapters}
        return [
            {
                "film": one.source,
                "status": one.status,
                "gyroscopes_within_ms": one.bound95_ms,
                "pictures_within_ms": None if one.total_ms is None else 2 * one.total_ms,
                "said": one.bounds_in_words.replace("`", ""),
            }
            for one in found
            if one.source in names
        ]

    @cached_property
    def accepted(self) -> AcceptedSteps | None:
        """The step times of an annotator that were accepted; None where the touches count.

        Raises BadAnnotations, NotReleasable where they are of another film.
        """
        found = accepted_steps(self.recording.path)
        if found is not None:
            self._check_video(found, "step times")
        return found

    def _check_video(self, marked: MarkedVideo, what: str) -> None:
        if (marked.frames, marked.fps) != (len(self.frames), self.frames.fps):
            theirs = f"{marked.frames} frames, {marked.fps} a second"
            ours = f"its film has {len(self.frames)}, {self.frames.fps} a second"
            raise NotReleasable(f"its accepted {what} are of a film of {theirs}, {ours}; accept others")

    @property
    def pauses(self) -> Pauses:
        """When nothing was to be recorded, as asked for at the tablet, with the doubt about its clock."""
        return self.recording.stored.pauses

    @cached_property
    def hidden(self) -> npt.NDArray[np.bool_]:
        """Which pictures of the film are not to be seen."""
        return in_pauses(self.frames.capture_ns, self.frames.bound_ns, self.pauses)

    def check_placed(self) -> None:
        """Raise NotReleasable where nothing tells when its film was taken, NotSynchronized where nobody tried."""
        if not self.frames.is_placed:
            untried = "run `kitchensync sync` first"
            error = NotReleasable if self.frames.why else NotSynchronized
            raise error(f"nothing tells when its film was taken: {self.frames.why or untried}")

    def place(self, host_ns: int) -> FilmPlace:
        """Return where a logged moment is in the film; the nearest end of it where the film does not show it."""
        return self.frames.place(host_ns, self._uncertainties_ns.get(host_ns, 0))

    @cached_property
    def _uncertainties_ns(self) -> dict[int, int]:
        events = [event for writer in WRITERS for event in events_of(self.recording.path, writer)]
        return {event["host_ns"]: int(event.get("uncertainty_ns") or 0) for event in events}

    def marked_place(self, film_s: float) -> FilmPlace:
        """Return the place of a moment of an error that annotators marked, exact to a frame.

        Raises NotReleasable where they marked another film.
        """
        self._check_video(self.state["marked_video"], "moments of errors")
        return FilmPlace(film_s, float(1 / self.frames.fps))
