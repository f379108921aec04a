"""Write the videos and synchronized data of one recording into a data set, and report what is absent.

A file gets its name when it is complete, and an up-to-date file is not written again, so that an interrupted release
continues. The camera's gyroscope samples are beside its video, on the capture clock: a receiver verifies the video's
capture times with them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kitchensync.dataset.release import calibration_files
from kitchensync.dataset.release.calibration_files import calibration_of
from kitchensync.dataset.release.headset_frames import Arrays, Film, HeadsetFrames, NothingThere, save_arrays
from kitchensync.dataset.release.headset_sync import PREFIX, SyncWriter
from kitchensync.dataset.source.data_set import GOPRO, MOTION, AbsentKind
from kitchensync.dataset.source.own_recording import OwnRecording
from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.sensors.gopro.mp4.join import join
from kitchensync.shell.files_on_disk import file_sha256
from kitchensync.storage.copies.read_through import promised_hashes
from kitchensync.storage.errors import StorageError, pass_on_trouble, words_of
from kitchensync.storage.exports.arrays_file import made_of
from kitchensync.storage.exports.film import made_of_film, write_small_film
from kitchensync.storage.frame_capture_times import film_host_ns
from kitchensync.storage.options.outputs import OutputRefused, check_output, write_into, written
from kitchensync.storage.privacy import in_pauses
from kitchensync.storage.reading.alignments import BOUNDS, FilmClock, film_clocks
from kitchensync.storage.reading.instants import NotIndexed

if TYPE_CHECKING:
    from kitchensync.sensors.gopro.files.media import GoProMedia


def motion_of(own: OwnRecording) -> Arrays:
    """Return the gyroscope samples of a camera's video, all aligned chapters concatenated; NaN in a pause.

    `sample_motion_s` (n,) seconds of the clip, `sample_capture_ns` (n,), `xyz` (n, 3) rad/s in the camera's axes,
    `gyroscope_bound_ns` (3,) bound by `sync` between both gyroscopes at start, middle and end (95 %). Raises
    NothingThere, UnreadableMedia.
    """
    media_s, capture_ns, values, bounds_ms = [], [], [], []
    for _, start_s, clock in _aligned(own):
        host = own.recording.clock.host_clock(clock.headset)
        track = clock.gyroscope()
        sample_ns = film_host_ns(own.recording.stored, own.camera, clock, host, track.t_s) if host else None
        if sample_ns is None or host is None or clock.errors is None:
            continue
        xyz = track.xyz.astype(np.float32)
        xyz[in_pauses(sample_ns, host.bound_ns, own.pauses)] = np.nan
        media_s.append(track.t_s + start_s)
        capture_ns.append(sample_ns)
        values.append(xyz)
        bounds_ms.append([np.nan if bound is None else bound for bound in clock.errors.bound95_ms])
    if not values:
        raise NothingThere(own.frames.why or "there is no headset gyroscope to compare it with")
    stated_ms = [bounds for bounds in bounds_ms if len(bounds) == BOUNDS and np.isfinite(bounds).all()]
    if not stated_ms:
        raise NothingThere("`sync` states no bound of the gyroscopes")
    worst_ms = np.max(np.array(stated_ms), axis=0)
    return {
        "sample_motion_s": np.concatenate(media_s),
        "sample_capture_ns": np.concatenate(capture_ns),
        "xyz": np.concatenate(values),
        "gyroscope_bound_ns": np.rint(worst_ms * 1e6).astype(np.int64),
        "unit": np.array("rad/s"),
    }


def motion_seconds(own: OwnRecording) -> npt.NDArray[np.float64]:
    """Return the time of each video frame on the time base of the gyroscope samples, (n,) seconds of the clip.

    NaN if its chapter is not aligned.
    """
    seconds = np.full(len(own.clip.frame_times_s), np.nan)
    for number, start_s, clock in _aligned(own):
        chapter: GoProMedia = own.clip.chapters[number]
        first = own.clip.first_frames[number]
        frames = slice(first, first + len(chapter.frame_times_s))
        seconds[frames] = chapter.frame_times_s + clock.picture_late_s + start_s
    return seconds[own.clip.even_frames]


def _aligned(own: OwnRecording) -> Iterator[tuple[int, float, FilmClock]]:
    """Yield the number, the start in the clip (seconds) and the clock of each aligned chapter of the video."""
    clocks = {
        clock.file: clock for clock in film_clocks(own.recording.path, own.recording.stored.readable)[0]
    }
    for number, (start, chapter) in enumerate(zip(own.clip.starts_s, own.clip.chapters, strict=True)):
        if chapter.path in clocks:
            yield number, float(start), clocks[chapter.path]


SMALL = {"360p": 360, "720p": 720}
"""Small videos -> height, pixels."""
ORIGINAL, HEADSET = "4k", "hololens"
MEDIA = (ORIGINAL, "720p", "360p", HEADSET)
"""Values of `--media`."""
Tell = Callable[[int, int, str], None]


@dataclass
class Work:
    """Progress of the media of a release, in video frames."""

    tell: Tell
    whole: int
    done: int = 0
    "Of finished files."
    part: int = 0
    "Of the current file."
    _shown: int = 0

    def show(self, text: str, done: int, whole: int) -> None:
        """Report the progress of the current file; the total never decreases."""
        self._shown = max(self._shown, self.done + self.part * done // max(whole, 1))
        self.tell(self._shown, self.whole, text)

    def finish(self, text: str) -> None:
        """Report that the current file is finished."""
        self.done, self.part = self.done + self.part, 0
        self.show(text, 0, 1)


def work_of(media: tuple[str, ...], frames: int) -> int:
    """Return the work for a video of `frames` frames; copying counts a tenth of encoding."""
    return sum(frames // 10 if name == ORIGINAL else frames for name in media)


@dataclass
class Media:
    """The written media: path by kind, absent kinds, and number of frames without data by kind."""

    links: dict[str, str] = field(default_factory=dict)
    absent: list[AbsentKind] = field(default_factory=list)
    holes: dict[str, int] = field(default_factory=dict)

    def lacks(self, kind: str, why: str) -> None:
        """Add an absent kind."""
        self.absent.append({"kind": kind, "why": why})


@dataclass(frozen=True)
class MediaWriter:
    """Writes the media of one recording into the data set `out`."""

    own: OwnRecording
    published_id: str
    out: Path
    force: bool
    work: Work

    def write(self, requested: tuple[str, ...]) -> Media:
        """Write the requested media that the recording has. Raises OSError, OutputRefused."""
        made = Media()
        for name in MEDIA:
            kind = PREFIX if name == HEADSET else f"gopro_{name}"
            if name not in requested:
                made.lacks(kind, "not asked for")
                continue
            self.work.part = work_of((name,), len(self.own.frames))
            try:
                if name == ORIGINAL:
                    self._original(kind, made)
                elif name == HEADSET:
                    self._synced(made)
                else:
                    self._small(name, kind, made)
            except OutputRefused:
                raise
            except (SensorError, StorageError) as error:
                pass_on_trouble(error)
                made.lacks(kind, words_of(error))
            self.work.finish(self.published_id)
        if any(kind.startswith("gopro_") for kind in made.links):
            self._motion(made)
        if made.links:
            self._calibration(made)
        for name in self.own.others:
            made.lacks(name, "the published form has one film and one headset a recording")
        return made

    def _small(self, name: str, kind: str, made: Media) -> None:
        """Write a small video of constant rate, and the capture times of its frames."""
        clip, height = self.own.clip, SMALL[name]
        video = clip.chapters[0].video
        if video is None or (video.shown_size[1] < height and height > min(SMALL.values())):
            made.lacks(kind, f"the camera's video has fewer than {height} lines")
            return
        path = f"{GOPRO.format(name, self.published_id, name)}.mp4"
        source = self._made_of("film")
        if self._is_missing(path, made_of_film(self.out / path), source):
            with written(self.out / path, force=self.force, ending=".mp4") as part:
                show = partial(self.work.show, f"{self.published_id} {name}")
                write_small_film(clip, part, height=height, hidden=self.own.hidden, made_of=source, tell=show)
        if hidden := int(self.own.hidden.sum()):
            made.holes[kind] = hidden
        made.links[kind] = path
        self._times(f"{GOPRO.format(name, self.published_id, name)}_frames.npz", f"{kind}_frames_npz", made)

    def _times(self, path: str, kind: str, made: Media) -> None:
        """Write the table of a small video: frame k was captured at `capture_ns[k]` and is shown at k / fps."""
        frames, source = self.own.frames, self._made_of("times")
        if not frames.is_placed:
            made.lacks(kind, frames.why or "its frames have no capture times")
            return
        if self._is_missing(path, made_of(self.out / path), source):
            arrays: Arrays = {
                "frame": np.arange(len(frames)),
                "capture_ns": frames.capture_ns,
                "bound_ns": frames.bound_ns,
                "fps": np.array([frames.fps.numerator, frames.fps.denominator]),
                "hidden": self.own.hidden,
                "motion_s": motion_seconds(self.own),
            }
            save_arrays(self.out / path, source, arrays, force=self.force)
        made.links[kind] = path

    def _motion(self, made: Media) -> None:
        """Write the camera's gyroscope samples on the capture clock."""
        path, source, kind = MOTION.format(self.published_id), self._made_of("motion"), "gopro_gyroscope_npz"
        try:
            if self._is_missing(path, made_of(self.out / path), source):
                save_arrays(self.out / path, source, motion_of(self.own), force=self.force)
            made.links[kind] = path
        except NothingThere as error:
            made.lacks(kind, str(error))
        except SensorError as error:
            pass_on_trouble(error)
            made.lacks(kind, words_of(error))

    def _calibration(self, made: Media) -> None:
        """Write the calibration of the headset's sensors, and the relation of its clock to UTC."""
        description, constants = calibration_of(self.own)
        stem = f"{calibration_files.FOLDER}/{self.published_id}"
        for short, arrays in constants.items():
            path, digest = f"{stem}_{short}.npz", hashlib.sha256()
            for name, values in sorted(arrays.items()):
                digest.update(f"{name} {values.dtype} {values.shape}".encode() + np.asarray(values).tobytes())
            if self._is_missing(path, made_of(self.out / path), digest.hexdigest()):
                save_arrays(self.out / path, digest.hexdigest(), arrays, force=self.force)
            made.links[f"calibration_{short}_npz"] = path
        content = (json.dumps(description, indent=1) + "\n").encode()
        write_into(self.out, {f"{stem}.json": content}, force=self.force)
        made.links["calibration_json"] = f"{stem}.json"

    def _original(self, kind: str, made: Media) -> None:
        """Write the camera's video, samples unchanged, chapters joined, without location and serial number."""
        clip = self.own.clip
        if self.own.pauses:
            made.lacks(kind, "it contains frames of a privacy pause; in the small videos they are black")
            return
        hashes = promised_hashes(self.own.recording.stored.readable, self.own.manifest)
        for chapter in clip.chapters:
            expected = hashes.get(f"{self.own.camera}/{chapter.path.name}")
            if expected is not None and file_sha256(chapter.path) != expected:
                made.lacks(kind, f"{chapter.path.name} is not what was recorded; take it from a copy")
                return
        path = f"{GOPRO.format('4k', self.published_id, '4K')}.mp4"
        place = self.out / path
        paths = [chapter.path for chapter in clip.chapters]
        if not place.exists() or _frame_sizes([place]) != _frame_sizes(paths):
            check_output(place, force=self.force)
            with written(place, force=self.force, ending=".mp4") as part:
                show = partial(self.work.show, f"{self.published_id} 4k")
                join(paths, part, strip_location=True, replace=True, progress=show)
        made.links[kind] = path

    def _synced(self, made: Media) -> None:
        """Write the headset's streams on the frames of the index."""
        recording = self.own.recording
        headset = recording.stored.main_headset
        if not headset:
            made.lacks(PREFIX, "no headset was recorded")
            return
        host = recording.clock.host_clock(headset)
        if host is None:
            made.lacks(PREFIX, "the headset's clock was never compared with the capture clock")
            return
        try:
            film = Film(self.own.camera, self.own.clip, self.own.frames) if self.own.camera else None
            frames = HeadsetFrames(recording, headset, host, self.own.pauses, film)
            is_on_clock = recording.stored.instants.device == headset and len(frames) > 0
        except NotIndexed as error:
            made.lacks(PREFIX, words_of(error))
            return
        if not is_on_clock:
            made.lacks(PREFIX, "its frame index is not on the headset's clock; run `kitchensync sync` again")
            return
        show = partial(self.work.show, f"{self.published_id} hololens")
        synced = SyncWriter(frames, self.published_id, self.out, self.force, show).write()
        made.links |= synced.links
        made.holes |= synced.holes
        for kind, why in synced.absent.items():
            made.lacks(kind, why)

    def _made_of(self, what: str) -> str:
        """Return a digest of the video, or of its capture times."""
        digest = hashlib.sha256(f"{self.own.manifest['uuid']} {what} {self.own.pauses}".encode())
        if what in ("times", "motion"):
            digest.update(self.own.frames.capture_ns.tobytes() + self.own.frames.bound_ns.tobytes())
            digest.update(motion_seconds(self.own).tobytes())
        else:
            digest.update(self.own.clip.shown_as)
        return digest.hexdigest()

    def _is_missing(self, path: str, digest: str, expected: str) -> bool:
        """Return whether a file must be written. Raises OutputRefused if it would replace a file without `force`."""
        if digest == expected:
            return False
        check_output(self.out / path, force=self.force)
        return True


def _frame_sizes(paths: list[Path]) -> list[int]:
    """Return the size of every encoded frame, which identifies a video."""
    sizes: list[int] = []
    for path in paths:
        with open_media(path).container() as film:
            sizes += [entry.size for entry in film.streams.video[0].index_entries]
    return sizes
