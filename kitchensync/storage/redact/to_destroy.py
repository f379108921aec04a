"""What is to be destroyed of a recording for some spans of time: chunks by number, samples of films."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from kitchensync.sensors.gopro.files.clip import open_clip
from kitchensync.shell.files_on_disk import file_sha256
from kitchensync.storage.chunks.chunk_reader import Chunk, chunk_paths, is_archive
from kitchensync.storage.errors import HoldsPauses, NotRedactable
from kitchensync.storage.exports.hidden_films import clips_in
from kitchensync.storage.frame_capture_times import rough_capture_times
from kitchensync.storage.manifest import Manifest
from kitchensync.storage.names import MANIFEST, chunk_number, chunk_range, stream_folder
from kitchensync.storage.privacy import Pauses, pauses_of
from kitchensync.storage.reading.decoded import is_seen
from kitchensync.storage.recording import Recording, open_recording
from kitchensync.storage.redact.blanked_films import hidden_samples
from kitchensync.storage.redact.redactions import done_samples, in_runs
from kitchensync.storage.timeline.film_times import UNKNOWN

if TYPE_CHECKING:
    from kitchensync.storage.manifest_form import RedactedChunkForm, RedactedFilmForm


class PicturesAndSound(NamedTuple):
    """What is to be destroyed: chunks by stream, samples by film."""

    streams: dict[str, list[RedactedChunkForm]]
    films: dict[str, RedactedFilmForm]


def plan(recording: Recording, spans: Pauses, *, whole_films: bool) -> PicturesAndSound:
    """Look what pictures and sound of some spans there are; `whole_films` instead of parts. Raises NotRedactable."""
    recording.pauses = spans
    streams: dict[str, list[RedactedChunkForm]] = {}
    films: dict[str, RedactedFilmForm] = {}
    for name in recording.streams:
        if is_seen(recording.manifest, name):
            hidden = [one for index, one in chunks_of(recording, name) if recording.hides(name, index).any()]
            streams |= {name: hidden} if hidden else {}
    if not whole_films:
        for camera in recording.gopro_files:
            for paths in clips_in(recording, camera):
                frames = rough_capture_times(recording, camera, open_clip(*paths))
                if (frames.capture_ns == UNKNOWN).any():
                    raise NotRedactable(
                        recording.path,
                        f"nothing tells when the pictures of {camera}/{paths[0].name} were taken "
                        f"({frames.why or 'not aligned'})",
                        "run `kitchensync sync`, or give --whole-films to destroy such films whole",
                    )
    for camera, files in recording.gopro_files.items():
        for file in files:
            name, samples = f"{camera}/{file.name}", hidden_samples(recording, file)
            if any(_is_left(recording.manifest, name, *track) for track in samples.items()):
                films[name] = {"sha256": file_sha256(file), "samples": samples}
    return PicturesAndSound(streams, films)


def chunks_of(recording: Recording, name: str) -> Iterator[tuple[npt.NDArray[np.void], RedactedChunkForm]]:
    """Yield index, (n,) of INDEX, and facts of each chunk of a stream, also of those in archives."""
    sealed = recording.manifest["files"]
    for path in chunk_paths(stream_folder(recording.readable, name)):
        with Chunk(path) as chunk:
            index, blocks = chunk.index, chunk.blocks
        if is_archive(path):
            for block in blocks:
                rows = index[int(block["first_row"]) : int(block["first_row"] + block["rows"])]
                sha256, size = block["file_sha256"].decode(), int(block["file_bytes"])
                yield rows, _facts_of(int(block["number"]), size, sha256, rows)
        else:
            facts = sealed.get(f"{name}/{path.name}")
            sha256 = facts["sha256"] if facts else file_sha256(path)
            yield index, _facts_of(chunk_number(path) or 0, path.stat().st_size, sha256, index)


def _facts_of(number: int, size: int, sha256: str, index: npt.NDArray[np.void]) -> RedactedChunkForm:
    seqs, ticks = index["seq"], index["device_ticks"]
    return {
        "chunk": number,
        "bytes": size,
        "sha256": sha256,
        "packets": len(index),
        "seq": [int(seqs[0]), int(seqs[-1])],
        "ticks": [int(ticks[0]), int(ticks[-1])],
    }


def _is_left(manifest: Manifest, film: str, handler: str, runs: list[list[int]]) -> bool:
    """Return whether some samples of a track are not yet destroyed."""
    count = 1 + max(last for _, last in runs)
    return bool((in_runs(runs, count) & ~in_runs(done_samples(manifest, film, handler), count)).any())


def is_of(path: Path, numbers: set[int]) -> bool:
    """Return whether a sealed file is one of these chunks, or an archive of some."""
    span = chunk_range(path)
    return span is not None and any(span[0] <= number <= span[1] for number in numbers)


def check_no_pauses(recording: Path) -> None:
    """Raise HoldsPauses if a recording has pictures or sound of its privacy pauses; StorageError."""
    if any(_of_pauses(recording)):
        raise HoldsPauses(recording)


def check_no_pauses_in(file: Path) -> None:
    """Raise HoldsPauses if a film of a recording includes one of its privacy pauses; other files never do."""
    recording = file.resolve().parent.parent
    name = f"{file.resolve().parent.name}/{file.name}"
    if (recording / MANIFEST).is_file() and name in _of_pauses(recording).films:
        raise HoldsPauses(recording)


def _of_pauses(recording: Path) -> PicturesAndSound:
    if not (pauses := pauses_of(recording)):
        return PicturesAndSound({}, {})
    with open_recording(recording) as opened:
        return plan(opened, pauses, whole_films=True)
