"""Films cut, moved and damaged as people bring them, with the truth of how they were made: from the shared data."""

from __future__ import annotations

import importlib.util
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

REAL_FILM = "gopro/max-heromode.mp4"


class StrangeFilm(NamedTuple):
    """The files of one case, and what is true of each by its name."""

    paths: list[Path]
    truth: dict[str, dict[str, Any]]


def film_maker(shared_data: Callable[[str], Path]) -> ModuleType:
    """The module that cuts films, `make_films`, with its tables as `tables`; the test is skipped without it."""
    if "make_films" in sys.modules:
        return sys.modules["make_films"]
    folder = shared_data("strangers/make_films.py").parent
    for name in ("film_tables", "make_films"):
        spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    maker = sys.modules["make_films"]
    maker.tables.read = _closed(maker.tables.read)  # type: ignore[attr-defined]
    return maker


def _closed(read: Callable[[Path], Any]) -> Callable[[Path], Any]:
    """Let a reader that leaves its file to the last reference do so in silence."""

    def quiet(path: Path) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            return read(path)

    return quiet


def write_cases(maker: ModuleType, film: Path, folder: Path) -> dict[str, StrangeFilm]:
    """Write every case that is made of a film's own pictures; the film's own are kept as they are."""
    made = {}
    for name, files, _ in maker.cases(maker.tables.read(film)):
        (folder / name).mkdir(parents=True)
        for file, new, _ in files:
            maker.tables.write(new, folder / name / file)
        made[name] = StrangeFilm([folder / name / file for file, _, _ in files], {f: t for f, _, t in files})
    return made


def expected_of_real_film(shared_data: Callable[[str], Path]) -> dict[str, Any]:
    """What the shared data says of the cases of `REAL_FILM`, by name and file."""
    told = json.loads(shared_data("strangers/expected.json").read_text())
    found: dict[str, Any] = told["films"]["of_max_heromode"]
    return found
