"""`kitchensync export features`: a vector for each second of each film."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TypedDict

import click

from kitchensync.dataset.commands.export_source import (
    Assessed,
    answer,
    missing_films,
    read_source,
    source_arguments,
    status_of,
)
from kitchensync.dataset.features.extractor import Extractor, load_extractor
from kitchensync.dataset.features.film_windows import film_vectors, windows_in
from kitchensync.dataset.source.source_films import OpenFilm, open_film
from kitchensync.shell.answer import Answer, answers
from kitchensync.shell.files_on_disk import file_sha256
from kitchensync.shell.progress import Bar
from kitchensync.storage.exports.arrays_file import ArraysFile, made_of, open_arrays
from kitchensync.storage.names import check_recording_id
from kitchensync.storage.options.output_options import OutputFolder, output
from kitchensync.storage.options.outputs import check_output, written


class WindowCounts(TypedDict):
    """Windows of a video."""

    windows: int
    empty: int
    "Windows that show nothing: their vectors are 0."


class FeatureFiles(Assessed):
    """The object `export-features/1`."""

    recordings: int
    extractor: str
    size: int
    "Numbers of a vector."
    files: dict[str, WindowCounts]
    absent: list[str]
    "Recordings without a video."


@click.command()
@source_arguments
@output("out", "--out", kind=OutputFolder(), required=True, help="Folder of one file per video.")
@click.option(
    "--extractor",
    "name",
    default="histograms",
    show_default=True,
    help="Extractor of the vectors: histograms (colours, edges and motion, 100 numbers, no model), or an extractor "
    "of an installed package.",
)
@click.option(
    "--window", type=click.Choice(["1", "2"]), default="1", show_default=True, help="Seconds of a vector."
)
@answers("export-features/1")
def features(
    paths: tuple[Path, ...], strict: bool, out: Path, force: bool, name: str, window: str
) -> Answer[FeatureFiles]:
    """Write a feature vector for each second, or two, of each video: <recording>_360p.mp4_1s_1s.npz.

    Row k of its `arr_0` (n, size) float32 is second k of the video, as in the published feature files and as in
    `export seconds`. Frames of a privacy pause are skipped; a row without visible frames is 0. A folder in the
    published form must hold its small videos. A second run continues with the videos that are not done.

    \b
    Example:
      kitchensync export features our-kitchens --out features
    """
    extractor, seconds = load_extractor(name), int(window)
    source = read_source(paths)
    ids = [recording.recording_id for recording in source.data.annotations.recordings]
    files: dict[str, WindowCounts] = {}
    absent = []
    with Bar(unit="windows") as bar:
        for recording in ids:
            path = out / f"{check_recording_id(recording)}_360p.mp4_{seconds}s_{seconds}s.npz"
            with open_film(source, recording) as film:
                if film is None:
                    absent.append(recording)
                    continue
                files[path.name] = _write_vectors(film, path, name, extractor, seconds, bar, force=force)
    empty = sum(counts["empty"] for counts in files.values())
    warnings = missing_films(absent)
    warnings += [f"{empty} windows show nothing and are 0"] if empty else []
    warnings += source.warnings
    report: FeatureFiles = {
        "status": status_of(warnings),
        "recordings": len(ids),
        "extractor": name,
        "size": extractor.size,
        "files": files,
        "absent": absent,
        "warnings": warnings,
    }
    summary = f"{len(files)} files of vectors with {extractor.size} numbers in {out}"
    return answer(report, summary, strict=strict)


def _write_vectors(
    film: OpenFilm, path: Path, name: str, extractor: Extractor, seconds: int, bar: Bar, *, force: bool
) -> WindowCounts:
    """Write the vectors of a video unless they exist; return the numbers of windows and of empty windows."""
    import numpy as np

    # The file is written again when the video, its hidden frames or the extractor changed.
    digest = hashlib.sha256(f"{name} {extractor.version} {seconds}".encode())
    for chapter in film.clip.chapters:
        digest.update(file_sha256(chapter.path).encode())
    if film.hidden is not None:
        digest.update(film.hidden.tobytes())
    source_digest = digest.hexdigest()
    if made_of(path) == source_digest:
        with open_arrays(path) as arrays:
            return {"windows": len(arrays["arr_0"]), "empty": int(arrays["empty"].sum())}
    check_output(path, force=force)
    count = windows_in(film, seconds)
    vectors, empty = np.zeros((count, extractor.size), np.float32), np.zeros(count, bool)
    for number, vector in film_vectors(film, name, extractor, seconds):
        empty[number] = vector is None
        if vector is not None:
            vectors[number] = vector
        bar.show(number + 1, count, path.name)
    with written(path, force=force) as part, ArraysFile(part, source_digest) as file:
        file.add("arr_0", vectors)
        file.add("empty", empty)
    return {"windows": count, "empty": int(empty.sum())}
