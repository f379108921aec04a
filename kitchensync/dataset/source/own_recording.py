"""A lab's own recording, opened for release, annotation or review: log, video and accepted steps."""

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
    """Alignment of a video file: error bounds in milliseconds, and `said`, the bounds as a sentence."""

    film: str
    status: str
    gyroscopes_within_ms: float | None
    pictures_within_ms: float | None
    said: str


class NotReleasable(RecipeError):
    """A recording cannot become part of a data set."""


class NotSynchronized(NotReleasable):
    """The video of a recording is not synchronized yet."""


@dataclass(frozen=True)
class OwnRecording:
    """An open recording; `clip` is its camera's video."""

    recording: OpenedRecording
    state: State
    operations: list[Op]

    @classmethod
    def open(
        cls, path: Path, *, without_consent: str = "", purpose: Purpose = Purpose.RELEASE_RAW
    ) -> OwnRecording:
        """Open a recording folder for a purpose; `without_consent` is the reason to open it without consent.

        Raises NotARecording, Withdrawn, NotPermitted, NotReleasable, BadAnnotations.
        """
        recording = OpenedRecording(path, purpose=purpose, without_consent=without_consent)
        manifest = recording.stored.manifest
        if manifest["state"] != "complete":
            raise NotReleasable(f"{path}: is not complete; end it, or run `kitchensync recover`")
        if purpose != Purpose.LOOK:
            if why := why_aborted(manifest):
                raise NotReleasable(f"{path}: it was aborted and shall not be used: {why}")
            if not manifest.get("uuid"):
                raise NotReleasable(f"{path}: recording.json has no uuid; restore it from a copy")
            if manifest.get(MADE_FROM):
                raise NotReleasable(
                    f"{path}: it was cut or replayed from another recording; use the original"
                )
        operations, state = read_log(path)
        if state["recording"] is None:
            raise NotReleasable(f"{path}: no recipe was cooked in it, the tablet's log is empty")
        if state["withdrawn"] is not None:  # the manifest may not have it yet
            raise NotReleasable(f"{path}: the participant withdrew consent; it may not be used or shared")
        return cls(recording, state, operations)

    def __enter__(self) -> OwnRecording:
        """Return the open recording."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close its files."""
        self.recording.close()

    @property
    def manifest(self) -> Manifest:
        """The manifest as it was when the recording was opened."""
        return self.recording.stored.manifest

    @property
    def camera(self) -> str:
        """Name of the camera whose video the times refer to; empty if there is none."""
        return next((name for name, files in self.recording.stored.gopro_files.items() if files), "")

    def check_filmed(self) -> None:
        """Raise NotReleasable unless the recording has the video of a camera that KitchenSync controlled."""
        if self.camera:
            return
        if is_on_card(self.recording.path):
            raise NotReleasable("its video has not been copied from the camera yet")
        if any(device["kind"] == "video" for device in self.manifest["devices"].values()):
            raise NotReleasable("its video was imported: touches of the tablet cannot be placed in it")
        raise NotReleasable("it has no video, so its step times cannot be given in seconds of a video")

    @property
    def others(self) -> list[str]:
        """Names of further clips, cameras and headsets, which the published form cannot hold."""
        files, devices = self.recording.stored.gopro_files, self.manifest["devices"]
        shown = {chapter.path for chapter in self.clip.chapters} if self.camera else set()
        clips = [clip.paths[0] for clip in group_clips(files.get(self.camera, []))]
        clips = [path for path in clips if path not in shown]
        cameras = [name for name in files if files[name] and name != self.camera]
        headsets = [name for name, device in devices.items() if device["kind"] == "hololens"]
        headsets = [name for name in headsets if name != self.recording.stored.main_headset]
        return [*(f"{self.camera}/{path.name}" for path in clips), *cameras, *headsets]

    @property
    def film_s(self) -> float:
        """Length of its video in seconds: frames divided by their rate."""
        return float(len(self.frames) / self.frames.fps)

    @cached_property
    def clip(self) -> Clip:
        """The camera's video: the clips that our shutter command started, else the first clip, chapters joined."""
        return film_of(
            self.recording.path, self.camera, self.recording.stored.gopro_files.get(self.camera, [])
        )

    @property
    def errors_planned(self) -> bool:
        """Whether an error was planned before cooking and not removed."""
        return any(error["planned"] and not error["removed"] for error in self.state["errors"].values())

    @cached_property
    def frames(self) -> FilmTimes:
        """Capture time of each video frame, at the constant rate."""
        return capture_times(self.recording.stored, self.camera, self.clip).shown(self.clip.even_frames)

    @cached_property
    def alignment(self) -> list[AlignmentRow]:
        """Alignment of each file of the video, as `sync` wrote it."""
        alignments = [read_alignment(path) for path in alignment_files(self.recording.path)]
        names = {f"{self.camera}/{chapter.path.name}" for chapter in self.clip.chapters}
        return [
            {
                "film": alignment.source,
                "status": alignment.status,
                "gyroscopes_within_ms": alignment.bound95_ms,
                "pictures_within_ms": None if alignment.total_ms is None else 2 * alignment.total_ms,
                "said": alignment.bounds_in_words.replace("`", ""),
            }
            for alignment in alignments
            if alignment.source in names
        ]

    @cached_property
    def accepted(self) -> AcceptedSteps | None:
        """The accepted step times of an annotator; None if the touches of the tablet count.

        Raises BadAnnotations, and NotReleasable if they belong to another video.
        """
        steps = accepted_steps(self.recording.path)
        if steps is not None:
            self._check_video(steps, "step times")
        return steps

    def _check_video(self, marked: MarkedVideo, what: str) -> None:
        if (marked.frames, marked.fps) != (len(self.frames), self.frames.fps):
            raise NotReleasable(
                f"its accepted {what} were marked in a video of {marked.frames} frames at {marked.fps} a second, but "
                f"its video has {len(self.frames)} at {self.frames.fps}; accept other annotations"
            )

    @property
    def pauses(self) -> Pauses:
        """The privacy pauses, widened by the uncertainty of the tablet's clock."""
        return self.recording.stored.pauses

    @cached_property
    def hidden(self) -> npt.NDArray[np.bool_]:
        """Which video frames are hidden by a privacy pause, (n,)."""
        return in_pauses(self.frames.capture_ns, self.frames.bound_ns, self.pauses)

    def check_placed(self) -> None:
        """Raise NotReleasable if its video has no capture times, NotSynchronized if `sync` was not run."""
        if self.frames.is_placed:
            return
        if self.frames.why:
            raise NotReleasable(f"its video has no capture times: {self.frames.why}")
        raise NotSynchronized("its video has no capture times: run `kitchensync sync` first")

    def place(self, host_ns: int) -> FilmPlace:
        """Return the place of a logged time in the video; its nearest end if the time is outside."""
        return self.frames.place(host_ns, self._uncertainties_ns.get(host_ns, 0))

    @cached_property
    def _uncertainties_ns(self) -> dict[int, int]:
        events = [event for writer in WRITERS for event in events_of(self.recording.path, writer)]
        return {event["host_ns"]: int(event.get("uncertainty_ns") or 0) for event in events}

    def marked_place(self, film_s: float) -> FilmPlace:
        """Return the place of an error time that annotators marked, exact to a frame.

        Raises NotReleasable if they marked another video.
        """
        self._check_video(self.state["marked_video"], "moments of errors")
        return FilmPlace(film_s, float(1 / self.frames.fps))
