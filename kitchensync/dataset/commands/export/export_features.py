"""`kitchensync export features`: a vector for each second of each film."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kitchensync.dataset.commands.export_source import answer, given, not_here, source
from kitchensync.shell.answer import Answer, answers
from kitchensync.shell.files_on_disk import file_sha256
from kitchensync.shell.progress import Bar
from kitchensync.storage.names import check_recording_id
from kitchensync.storage.options.output_options import OutputFolder, output
from kitchensync.storage.options.outputs import check_output, written

if TYPE_CHECKING:
    from kitchensync.dataset.features.extractor import Extractor
    from kitchensync.dataset.source.given_films import OpenFilm


@click.command()
@source
@output("out", "--out", kind=OutputFolder(), required=True, help="Folder of one file a film.")
@click.option(
    "--extractor",
    "name",
    default="histograms",
    show_default=True,
    help="What makes the vectors: histograms (colours, edges and motion, 100 numbers, no model), or one of an "
    "installed package.",
)
@click.option(
    "--window", type=click.Choice(["1", "2"]), default="1", show_default=True, help="Seconds of a vector."
)
@answers("export-features/1")
def features(paths: tuple[Path, ...], strict: bool, out: Path, force: bool, name: str, window: str) -> Answer:
    """Write a feature vector for each second, or two, of each video: <recording>_360p.mp4_1s_1s.npz.

    Row k of its `arr_0` (n, size) float32 is second k of the film, as in the published feature files and as `export
    seconds` counts. What was filmed in a privacy pause is not looked at; a row of which no picture is to be seen is
    0. A folder in the published form must hold its small films. Run again, it goes on with the films not yet done.

    \b
    Example:
      kitchensync export features our-kitchens --out features
    """
    from kitchensync.dataset.features.extractor import load_extractor
    from kitchensync.dataset.source.given_films import open_film

    extractor, seconds = load_extractor(name), int(window)
    found = given(paths)
    ids = [one.recording_id for one in found.data.annotations.recordings]
    made: dict[str, dict[str, int]] = {}
    absent = []
    with Bar(unit="windows") as bar:
        for recording in ids:
            path = out / f"{check_recording_id(recording)}_360p.mp4_{seconds}s_{seconds}s.npz"
            with open_film(found, recording) as film:
                if film is None:
                    absent.append(recording)
                    continue
                made[path.name] = _one(film, path, (name, extractor, seconds), bar, force=force)
    empty = sum(one["empty"] for one in made.values())
    warnings = not_here(absent)
    warnings += [f"{empty} windows show nothing and are 0"] if empty else []
    said = {
        "recordings": len(ids),
        "extractor": name,
        "size": extractor.size,
        "files": made,
        "absent": absent,
    }
    words = f"{len(made)} files of vectors with {extractor.size} numbers in {out}"
    return answer(said, warnings + found.warnings, words, strict=strict)


def _one(
    film: OpenFilm, path: Path, how: tuple[str, Extractor, int], bar: Bar, *, force: bool
) -> dict[str, int]:
    """Write the vectors of a film unless they are there; return how many there are, and how many are empty."""
    import numpy as np

    from kitchensync.dataset.features.film_windows import film_vectors, windows_in
    from kitchensync.storage.exports.arrays_file import ArraysFile, made_of, open_arrays

    name, extractor, seconds = how
    # Another text when the film, what is hidden of it, or the extractor is another one.
    digest = hashlib.sha256(f"{name} {extractor.version} {seconds}".encode())
    for chapter in film.clip.chapters:
        digest.update(file_sha256(chapter.path).encode())
    if film.hidden is not None:
        digest.update(film.hidden.tobytes())
    wanted = digest.hexdigest()
    if made_of(path) == wanted:
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
    with written(path, force=force) as part, ArraysFile(part, wanted) as file:
        file.add("arr_0", vectors)
        file.add("empty", empty)
    return {"windows": count, "empty": int(empty.sum())}
