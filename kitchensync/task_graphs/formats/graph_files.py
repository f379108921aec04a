"""Read graph files of any known format, and annotation folders."""

from __future__ import annotations

from pathlib import Path

from kitchensync.shell.files_on_disk import matching, read_plain
from kitchensync.task_graphs.errors import BadGraph
from kitchensync.task_graphs.formats.annotations import (
    AVERAGES,
    CATEGORIES,
    COMPLETE,
    ERRORS,
    SPLITS,
    STEP_TEXTS,
    VIDEOS,
    Annotations,
    parse_annotations,
)
from kitchensync.task_graphs.formats.by_name import kind_of, parse_graph
from kitchensync.task_graphs.model import Graph

MAX_BYTES = 20_000_000
MAX_ANNOTATION_BYTES = 32_000_000


def read_graph(path: Path, *, toy: str = "") -> Graph:
    """Read a graph of any known format, or a recipe text as a new graph; `toy` selects one of many in a file.

    Raises BadGraph, which names the file and the place.
    """
    text = read_text(path)
    return parse_graph(text, name=path.name, kind=kind_of(path.name, text), toy=toy)


def read_text(path: Path, *, most_bytes: int = MAX_BYTES) -> str:
    """Read a file as text with its line ends. Raises BadGraph if it is missing, too large or not UTF-8."""
    try:
        return read_bytes(path, most_bytes=most_bytes).decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadGraph(path.name, f"byte {error.start}", "not UTF-8; save the file as UTF-8") from error


def read_bytes(path: Path, *, most_bytes: int) -> bytes:
    """Read a whole file. Raises BadGraph if it is missing, too large, or a pipe or device, which may never end."""
    try:
        return read_plain(path.resolve(), most_bytes)
    except OSError as error:
        raise BadGraph(path.name, "", f"cannot be read ({error.strerror}); check the path") from error


def read_annotations(folder: Path) -> Annotations:
    """Read an annotation folder of CaptainCook4D. Raises BadGraph, which names the file and the place."""
    if not folder.is_dir():
        raise BadGraph(str(folder), "", "not a folder; give the folder with annotation_json/")
    texts = {
        path: read_text(folder / path, most_bytes=MAX_ANNOTATION_BYTES)
        for path in (COMPLETE, ERRORS, STEP_TEXTS, CATEGORIES, VIDEOS, AVERAGES, *SPLITS)
        if path in (COMPLETE, ERRORS, STEP_TEXTS) or (folder / path).exists()
    }
    return parse_annotations(texts)


def read_task_graphs(folder: Path) -> dict[str, Graph]:
    """Read every task graph below `folder`/task_graphs, by file stem. Raises BadGraph."""
    paths = matching(folder / "task_graphs", "*.json")
    if not paths:
        raise BadGraph(str(folder), "task_graphs", "has no task graphs; expected task_graphs/<recipe>.json")
    return {path.stem: read_graph(path) for path in paths}
