"""`verify` keeps what a film says of where its telemetry lies on its pictures; that is no verdict."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from strange_films import REAL_FILM, film_maker, write_cases

from kitchensync.cli import main

pytestmark = pytest.mark.slow


def _verified(data: Path, films: list[Path]) -> dict[str, Any]:
    for command in (["adopt", "take", *map(str, films), "--data", str(data)], ["verify", str(data / "take")]):
        done = CliRunner().invoke(main, [*command, "--json"])
        assert done.exit_code == 0, done.output
    kept: dict[str, Any] = json.loads((data / "take" / "sync" / "verify.json").read_text())
    return kept


@pytest.mark.parametrize(
    ("case", "agrees"), [("cut-late", False), ("chapters", True), ("chapters-payload-late", True)]
)
def test_the_clues_of_a_clip_are_kept(
    shared_data: Callable[[str], Path], tmp_path: Path, case: str, agrees: bool
) -> None:
    made = write_cases(film_maker(shared_data), shared_data(REAL_FILM), tmp_path / "made")
    kept = _verified(tmp_path / "data", made[case].paths)
    clued = {name: facts["clues"] for name, facts in kept["streams"].items() if "clues" in facts}
    assert list(clued) == [f"video/{made[case].paths[0].name}"]
    [clues] = clued.values()
    assert {clue["name"] for clue in clues} >= {"stamps", "payload times", "edit lists", "counts"}
    assert all(clue["agrees"] is not False for clue in clues) is agrees
    assert (kept["status"], bool(kept["notes"])) == ("PASS", not agrees)


def test_a_film_without_telemetry_has_no_clues(shared_data: Callable[[str], Path], tmp_path: Path) -> None:
    film = tmp_path / "silent.MP4"
    film.write_bytes(shared_data(REAL_FILM).read_bytes().replace(b"gpmd", b"none"))
    kept = _verified(tmp_path / "data", [film])
    assert "clues" not in kept["streams"]["video/silent.MP4"]
    assert kept["status"] == "PASS"
