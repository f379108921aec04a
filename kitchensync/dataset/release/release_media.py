"""Films and synchronized data of one recording in a data set: what `--media` may name, and what is absent and why.

A file has its name only when it is whole; one that was made of the same is left alone, so that a release goes on.
The camera's own rotation stands beside its film, on the capture clock: a receiver proves the film's times by it.
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
    """Return the gyroscope of a camera's film, all aligned chapters one after another; NaN in a pause.

    `sample_motion_s` (n,) is the second of the clip, `sample_capture_ns` (n,), `xyz` (n, 3) rad/s in the camera's
    axes, `gyroscope_bound_ns` (3,) how far `sync` says both gyroscopes may be apart at start, middle and end (95 %).
    Raises NothingThere, UnreadableMedia.
    """
    media_s, taken_ns, values, bounds_ms = [], [], [], []
    for _, start_s, clock in _aligned(own):
        host = own.recording.clock.host_clock(clock.headset)
        track = clock.gyroscope()
        found_ns = film_host_ns(own.recording.stored, own.camera, clock, host, track.t_s) if host else None
        if found_ns is None or host is None or clock.errors is None:
            continue
        xyz = track.xyz.astype(np.float32)
        xyz[in_pauses(found_ns, host.bound_ns, own.pauses)] = np.nan
        media_s.append(track.t_s + start_s)
        taken_ns.append(found_ns)
        values.append(xyz)
        bounds_ms.append([np.nan if bound is None else bound for bound in clock.errors.bound95_ms])
    if not values:
        raise NothingThere(own.frames.why or "no headset was there whose gyroscope it could be compared with")
    stated_ms = [one for one in bounds_ms if len(one) == BOUNDS and np.isfinite(one).all()]
    if not stated_ms:
        raise NothingThere("`sync` states no bound of the gyroscopes")
    worst_ms = np.max(np.array(stated_ms), axis=0)
    return {
        "sample_motion_s": np.concatenate(media_s),
        "sample_capture_ns": np.concatenate(taken_ns),
        "xyz": np.concatenate(values),
        "gyroscope_bound_ns": np.rint(worst_ms * 1e6).astype(np.int64),
        "unit": np.array("rad/s"),
    }


def motion_seconds(own: OwnRecording) -> npt.NDArray[np.float64]:
    """Return where each picture of the film lies in the camera's own motion, (n,) seconds of the clip.

    NaN where its chapter is not aligned.
    """
    found = np.full(len(own.clip.frame_times_s), np.nan)
    for number, start_s, clock in _aligned(own):
        chapter: GoProMedia = own.clip.chapters[number]
        first = own.clip.first_frames[number]
        here = slice(first, first + len(chapter.frame_times_s))
        found[here] = chapter.frame_times_s + clock.picture_late_s + start_s
    return found[own.clip.even_frames]


def _aligned(own: OwnRecording) -> Iterator[tuple[int, float, FilmClock]]:
    """Yield the number, the start in the clip (seconds) and the clock of each aligned chapter of the film."""
    clocks = {
        clock.file: clock for clock in film_clocks(own.recording.path, own.recording.stored.readable)[0]
    }
    for number, (start, chapter) in enumerate(zip(own.clip.starts_s, own.clip.chapters, strict=True)):
        if chapter.path in clocks:
            yield number, float(start), clocks[chapter.path]


SMALL = {"360p": 360, "720p": 720}
"""Heights of the small films that may be asked for."""
ORIGINAL, HEADSET = "4k", "hololens"
MEDIA = (ORIGINAL, "720p", "360p", HEADSET)
"""What `--media` may name."""
Tell = Callable[[int, int, str], None]


@dataclass
class Work:
    """How far the media of a whole release are, in pictures of films."""

    tell: Tell
    whole: int
    done: int = 0
    "Of what is finished."
    part: int = 0
    "Of what is being written."
    _shown: int = 0

    def show(self, words: str, done: int, whole: int) -> None:
        """Report how far the part is that is being written; it never goes back."""
        self._shown = max(self._shown, self.done + self.part * done // max(whole, 1))
        self.tell(self._shown, self.whole, words)

    def finish(self, words: str) -> None:
        """Say that the part is done."""
        self.done, self.part = self.done + self.part, 0
        self.show(words, 0, 1)


def work_of(wanted: tuple[str, ...], pictures: int) -> int:
    """Return how much there is to do for a film of so many pictures; copying is a tenth of it."""
    return sum(pictures // 10 if name == ORIGINAL else pictures for name in wanted)


@dataclass
class Media:
    """What was written: path by kind of link; why others are absent; frames that have none of a kind."""

    links: dict[str, str] = field(default_factory=dict)
    absent: list[AbsentKind] = field(default_factory=list)
    holes: dict[str, int] = field(default_factory=dict)

    def lacks(self, kind: str, why: str) -> None:
        """Note what is absent."""
        self.absent.append({"kind": kind, "why": why})


@dataclass(frozen=True)
class MediaWriter:
    """Writes the media of one recording into the data set `out`."""

    own: OwnRecording
    published_id: str
    out: Path
    force: bool
    work: Work

    def write(self, wanted: tuple[str, ...]) -> Media:
        """Write what is wanted. What a recording does not hold is absent; raises OSError, OutputRefused."""
        made = Media()
        for name in MEDIA:
            kind = PREFIX if name == HEADSET else f"gopro_{name}"
            if name not in wanted:
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
        """Write a film of constant rate, and when each of its pictures was taken."""
        clip, height = self.own.clip, SMALL[name]
        video = clip.chapters[0].video
        if video is None or (video.shown_size[1] < height and height > min(SMALL.values())):
            made.lacks(kind, f"the camera filmed no {height} lines")
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
        """Write the manifest of a small film: picture k was taken at `capture_ns[k]`, shown at k / fps."""
        frames, source = self.own.frames, self._made_of("times")
        if not frames.is_placed:
            made.lacks(kind, frames.why or "nothing tells when its pictures were taken")
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
        """Write the camera's own gyroscope on the capture clock."""
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
        """Write the constants of the headset's sensors, and what its clock is in UTC."""
        told, constants = calibration_of(self.own)
        stem = f"{calibration_files.FOLDER}/{self.published_id}"
        for short, arrays in constants.items():
            path, digest = f"{stem}_{short}.npz", hashlib.sha256()
            for name, values in sorted(arrays.items()):
                digest.update(f"{name} {values.dtype} {values.shape}".encode() + np.asarray(values).tobytes())
            if self._is_missing(path, made_of(self.out / path), digest.hexdigest()):
                save_arrays(self.out / path, digest.hexdigest(), arrays, force=self.force)
            made.links[f"calibration_{short}_npz"] = path
        write_into(self.out, {f"{stem}.json": (json.dumps(told, indent=1) + "\n").encode()}, force=self.force)
        made.links["calibration_json"] = f"{stem}.json"

    def _original(self, kind: str, made: Media) -> None:
        """Write the camera's film, each sample byte for byte, chapters joined, without place and serial number."""
        clip = self.own.clip
        if self.own.pauses:
            made.lacks(kind, "it shows what was filmed during a pause; the small films do not")
            return
        promised = promised_hashes(self.own.recording.stored.readable, self.own.manifest)
        for chapter in clip.chapters:
            stated = promised.get(f"{self.own.camera}/{chapter.path.name}")
            if stated is not None and file_sha256(chapter.path) != stated:
                made.lacks(kind, f"{chapter.path.name} is not what was recorded; take it from a copy")
                return
        path = f"{GOPRO.format('4k', self.published_id, '4K')}.mp4"
        place = self.out / path
        if not place.exists() or _picture_sizes([place]) != _picture_sizes([c.path for c in clip.chapters]):
            check_output(place, force=self.force)
            with written(place, force=self.force, ending=".mp4") as part:
                show = partial(self.work.show, f"{self.published_id} 4k")
                paths = [chapter.path for chapter in clip.chapters]
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
            is_of_it = recording.stored.instants.device == headset and len(frames) > 0
        except NotIndexed as error:
            made.lacks(PREFIX, words_of(error))
            return
        if not is_of_it:
            made.lacks(PREFIX, "its frame index is not on the headset's clock; run `kitchensync sync` again")
            return
        show = partial(self.work.show, f"{self.published_id} hololens")
        found = SyncWriter(frames, self.published_id, self.out, self.force, show).write()
        made.links |= found.links
        made.holes |= found.holes
        for kind, why in found.absent.items():
            made.lacks(kind, why)

    def _made_of(self, what: str) -> str:
        """Text that is another one when the film, or its place in time, is."""
        digest = hashlib.sha256(f"{self.own.manifest['uuid']} {what} {self.own.pauses}".encode())
        if what in ("times", "motion"):
            digest.update(self.own.frames.capture_ns.tobytes() + self.own.frames.bound_ns.tobytes())
            digest.update(motion_seconds(self.own).tobytes())
        else:
            digest.update(self.own.clip.shown_as)
        return digest.hexdigest()

    def _is_missing(self, path: str, found: str, wanted: str) -> bool:
        """Return whether a file is to be written; another one in its place needs `force`. Raises OutputRefused."""
        if found == wanted:
            return False
        check_output(self.out / path, force=self.force)
        return True


def _picture_sizes(paths: list[Path]) -> list[int]:
    """Return the bytes of every encoded picture: no two films have the same."""
    sizes: list[int] = []
    for path in paths:
        with open_media(path).container() as film:
            sizes += [entry.size for entry in film.streams.video[0].index_entries]
    return sizes
