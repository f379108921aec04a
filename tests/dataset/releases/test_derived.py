"""What commands wrote of a recording is found by a withdrawal: destroyed, or named; nobody else's file goes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from cooked_recording import copied, write_cooked
from derived_places import read_derived
from typed_commands import answer as run

from kitchensync.storage.copies.derived import asked, keeps, may_write, noting, of_one, sent
from kitchensync.storage.copies.derived_files import made_before
from kitchensync.storage.installation.own_list import own_list
from kitchensync.storage.manifest import read_manifest
from kitchensync.storage.options.outputs import written

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cooked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("own")
    write_cooked(root)
    return root


@pytest.fixture
def data(cooked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(cooked, tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data"


def places(said: dict[str, Any]) -> dict[str, tuple[int, str, bool]]:
    return {Path(one["place"]).name: (one["found"], one["done"], bool(one["open"])) for one in said["places"]}


def test_a_file_of_one_recording_goes_and_one_of_two_is_open(data: Path) -> None:
    copied(data, "take2", lambda manifest: manifest.update(pseudonym="P08"))
    run("export", "seconds", "data/take1", "--grid", "segment", "--out", "alone.csv")
    run("export", "seconds", "data", "--grid", "segment", "--out", "both.csv")
    run("export", "frames", "data/take1", "--out", "frames")
    run("export", "seconds", "data/take1", "--grid", "segment", "--out", "frames/seconds.csv")
    run("export", "features", "data/take1", "--out", "frames")
    Path("frames/mine.txt").write_text("notes")
    assert len(list(Path("frames").rglob("*"))) > 1
    both = Path("both.csv").read_bytes()
    said = run("withdraw", "data/take1")
    assert said["status"] == "open"
    found = places(said)
    assert (found["alone.csv"], found["both.csv"]) == ((1, "destroyed", False), (1, "nothing", True))
    assert not Path("alone.csv").exists()
    assert [path.name for path in Path("frames").rglob("*") if path.is_file()] == ["mine.txt"]
    assert Path("both.csv").read_bytes() == both
    assert sorted(path.name for path in (data / "take1").iterdir()) == ["recording.json"]
    Path("both.csv").unlink()  # made anew, say
    assert run("withdraw", "data/take1")["status"] == "done"
    assert "derived" not in read_manifest(data / "take1")["withdrawn"]
    assert len(read_derived(data / "take2")) == 1


def test_files_of_several_are_open_until_they_are_gone_or_made_anew_without_it(data: Path) -> None:
    copied(data, "take2", lambda manifest: manifest.update(pseudonym="P08"))
    copied(data, "take3", lambda manifest: manifest.update(pseudonym="P09"))
    words = ("export", "seconds", "data", "--grid", "segment", "--out", "all.csv")
    run(*words)
    assert b"take1" in Path("all.csv").read_bytes()
    assert places(run("withdraw", "data/take1"))["all.csv"] == (1, "nothing", True)
    assert places(run("withdraw", "data/take1"))["all.csv"] == (1, "nothing", True), "nobody made it anew"
    Path("all.csv").write_bytes(Path("all.csv").read_bytes() + b"\n")
    assert places(run("withdraw", "data/take1"))["all.csv"][2], "changed by hand it is not another"
    run("export", "seconds", "data/take2", "data/take3", "--grid", "segment", "--out", "all.csv", "--force")
    assert b"take1" not in Path("all.csv").read_bytes()
    said = run("withdraw", "data/take1")
    assert (said["status"], places(said)["all.csv"]) == ("done", (0, "nothing", False))
    assert b"take2" in Path("all.csv").read_bytes()


def test_films_and_pictures_beside_a_list_go_with_it(data: Path) -> None:
    run("export", "promqa", "data/take1", "--sample", 2, "--clips", "--frames", "--out", "out/asked.json")
    run("export", "coherence", "data/take1", "--frames", "--out", "out/mistakes.json")
    run("export", "coherence", "data/take1", "--boundaries", "--frames", "--out", "out/steps.json")
    written = {path.suffix for path in Path("out").rglob("*") if path.is_file()}
    assert written == {".json", ".jpg", ".mp4"}
    assert {Path(line["path"]).name for line in read_derived(data / "take1")} == {
        path.name for path in Path("out").iterdir()
    }
    assert run("withdraw", "data/take1")["status"] == "done"
    assert list(Path("out").iterdir()) == []


def test_a_file_that_is_another_one_by_now_stays(data: Path) -> None:
    run("export", "seconds", "data/take1", "--grid", "segment", "--out", "seconds.csv")
    Path("seconds.csv").write_text("somebody's own table")
    found = places(run("withdraw", "data/take1"))
    assert found["seconds.csv"] == (0, "nothing", True)
    assert Path("seconds.csv").read_text() == "somebody's own table"


def test_a_refused_output_is_nobodys(data: Path) -> None:
    Path("mine.csv").write_text("mine")
    run("export", "seconds", "data/take1", "--out", "mine.csv", code=1)
    assert read_derived(data / "take1") == []
    assert "mine.csv" not in places(run("withdraw", "data/take1"))
    assert Path("mine.csv").read_text() == "mine"


def test_a_place_that_is_away_is_open(data: Path) -> None:
    Path("disk").mkdir()
    run("export", "seconds", "data/take1", "--grid", "segment", "--out", "disk/seconds.csv")
    Path("disk").rename("elsewhere")
    assert places(run("withdraw", "data/take1"))["seconds.csv"] == (0, "nothing", True)
    Path("elsewhere").rename("disk")
    assert places(run("withdraw", "data/take1"))["seconds.csv"] == (1, "destroyed", False)
    assert not Path("disk/seconds.csv").exists()


def test_who_did_not_agree_has_no_line(data: Path) -> None:
    copied(data, "unwilling", lambda manifest: manifest.update(consent="none", virtual=False))
    run("export", "seconds", "data", "--grid", "segment", "--out", "both.csv")
    assert read_derived(data / "unwilling") == []
    (line,) = read_derived(data / "take1")
    assert (line["command"], Path(line["path"]).name) == ("kitchensync export seconds", "both.csv")


KILLED = """
import os, signal, sys
from kitchensync.cli import main
from kitchensync.storage.disk.durable import LOCAL
rename, allowed = LOCAL.rename, [int(sys.argv[1])]
def killed(part, place):
    if "kitchensync-part" in str(part):
        if not allowed[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        allowed[0] -= 1
    rename(part, place)
LOCAL.rename = killed
main(sys.argv[2:])
"""


def killed_after(names: int, *words: str) -> None:
    """Run a command that is killed when it would give its output, or one more file of it, a name."""
    done = subprocess.run([sys.executable, "-c", KILLED, str(names), *words], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr


def test_what_a_killed_command_had_not_named_yet_goes(data: Path) -> None:
    killed_after(0, "export", "seconds", "data/take1", "--grid", "segment", "--out", "out/seconds.csv")
    killed_after(0, "export", "tables", "data/take1", "--out", "out/tables")
    Path("out/mine.txt").write_text("notes")
    left = {path.relative_to("out").as_posix() for path in Path("out").rglob("*.kitchensync-part")}
    assert left == {"seconds.csv.kitchensync-part", "tables/take1.kitchensync-part"}
    said = run("withdraw", "data/take1")
    assert said["status"] == "done"
    assert places(said)["seconds.csv"] == (1, "destroyed", False)
    assert [path.name for path in Path("out").rglob("*") if path.is_file()] == ["mine.txt"]


def test_what_a_killed_command_had_named_is_open_until_it_is_gone(data: Path) -> None:
    Path("frames").mkdir()
    Path("frames/older.txt").write_text("from before")
    os.utime("frames/older.txt", (0, 0))
    killed_after(1, "export", "frames", "data/take1", "--out", "frames")
    named, part = Path("frames/frames.csv"), Path("frames/normal_training.csv.kitchensync-part")
    assert sorted(Path("frames").iterdir()) == [named, part, Path("frames/older.txt")]
    said = run("withdraw", "data/take1")
    (about,) = (one for one in said["places"] if Path(one["place"]).name == "frames")
    assert "1 files may be of `kitchensync export frames`, which noted no end" in about["open"]
    assert named.exists(), "it may be anybody's"
    assert not part.exists()
    assert run("withdraw", "data/take1")["status"] == "open"
    named.unlink()
    assert run("withdraw", "data/take1")["status"] == "done"
    assert Path("frames/older.txt").exists()


def test_a_second_run_that_ends_does_not_hide_the_killed_one(data: Path) -> None:
    words = ("export", "seconds", "data/take1", "--grid", "segment", "--out", "seconds.csv")
    killed_after(0, *words)
    run(*words)
    (line,) = read_derived(data / "take1")
    assert len(line["begun"]) == 1
    assert run("withdraw", "data/take1")["status"] == "done"
    assert not Path("seconds.csv").exists()


def test_a_command_that_ends_after_the_withdrawal_is_found_by_the_next(data: Path) -> None:
    with noting("kitchensync export seconds", print):
        asked(data / "take1")
        with written(Path("late.csv").resolve()) as part:
            assert run("withdraw", "data/take1")["status"] == "done", "nothing is there yet"
            part.write_text("what it read before")
    said = run("withdraw", "data/take1")
    assert places(said)["late.csv"] == (1, "destroyed", False)
    assert not Path("late.csv").exists()


def test_where_something_is_sent_stands_there_before(data: Path) -> None:
    with noting("kitchensync annotate push", print):
        asked(data / "take1")
        sent("https://labels.example")
        assert [line["server"] for line in read_derived(data / "take1")] == ["https://labels.example"]
    assert [one["kind"] for one in own_list(data / "take1").entries()] == ["derived"], "noted once"


def test_a_redaction_names_what_a_killed_command_left(data: Path) -> None:
    killed_after(0, "export", "seconds", "data/take1", "--grid", "segment", "--out", "seconds.csv")
    (said,) = made_before(data / "take1", time.time_ns())
    assert "seconds.csv.kitchensync-part: may show it" in said


def test_of_several_recordings_each_file_of_one_goes_with_it(data: Path) -> None:
    copied(data, "take2", lambda manifest: manifest.update(pseudonym="P08"))
    run("export", "tables", "data", "--out", "tables")
    (line,) = read_derived(data / "take2")
    assert (Path(line["path"]).name, "of" in line) == ("take2", False)
    said = run("withdraw", "data/take1")
    assert said["status"] == "done"
    assert places(said)["take1"][1] == "destroyed"
    assert [path.name for path in Path("tables").iterdir()] == ["take2"]
    assert Path("tables/take2/about.json").exists()


def test_what_was_being_made_of_one_of_several_is_destroyed_with_it_alone(data: Path) -> None:
    copied(data, "take2", lambda manifest: manifest.update(pseudonym="P08"))
    killed_after(1, "export", "tables", "data", "--out", "tables")
    assert sorted(path.name for path in Path("tables").iterdir()) == ["take1", "take2.kitchensync-part"]
    assert run("withdraw", "data/take2")["status"] == "done"
    assert [path.name for path in Path("tables").iterdir()] == ["take1"]
    assert "which noted no end" in run("withdraw", "data/take1")["places"][0]["open"]
    shutil.rmtree("tables/take1")
    assert run("withdraw", "data/take1")["status"] == "done"


def test_what_a_second_run_finds_made_already_is_known_as_its_own(data: Path) -> None:
    place = Path("out/one.csv").resolve()
    with noting("first", print):
        asked(data / "take1")
        with written(place) as part:
            part.write_text("rows")
    shutil.rmtree(data / "_app")  # as if it had been killed before it could note so
    with noting("second", print):
        may_write(place.parent)
        asked(data / "take1")
        with of_one(data / "take1"):
            keeps(place)
    said = run("withdraw", "data/take1")
    assert (said["status"], places(said)["one.csv"]) == ("done", (1, "destroyed", False))
    assert not place.exists()
