"""The catalogue says what reading every recording says: after changes, damage, withdrawals, at any depth."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kitchensync.cli import main
from kitchensync.storage.catalogue import kept_lines as kept
from kitchensync.storage.catalogue.kept_lines import FILE, catalogue_of
from kitchensync.storage.catalogue.listing import line_of, recordings_below
from kitchensync.storage.manifest import edit_manifest, write_json
from kitchensync.storage.verify import keep_verdict

PEOPLE = ("Basil", "Clove", "Sage")


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust a manifest's time of change at once: tests wait for no clock, and write slower than it ticks."""
    monkeypatch.setattr(kept, "SETTLED_NS", -(10**12))


def record(folder: Path, number: int, **more: Any) -> None:
    folder.mkdir(parents=True)
    manifest = {
        "schema": "recording/1",
        "recording": folder.name,
        "uuid": f"{number:032x}",
        "state": "complete",
        "files": {},
        "streams": {},
        "devices": {},
        "recipe": {"name": ("tea", "soup")[number % 2], "order": [1, 2]},
        "script": {"strategy": ("normal", "induced")[number % 3 > 0], "display": "steps"},
        "pseudonym": PEOPLE[number % 3],
        "place": "north",
        "consent": "form",
        "consent_scopes": ["annotate", "release_raw"][: number % 3],
        "started": {"utc_ns": (1_750_000_000 + number) * 10**9, "host_ns": 0},
        "stopped": {"host_ns": number * 10**9},
    }
    write_json(folder / "recording.json", manifest | more)


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    root = tmp_path / "data"
    for number in range(24):
        record(root.joinpath(*(f"d{n}" for n in range(number % 4)), f"take-{number}"), number)
    lines(root)  # built
    assert (root / FILE).is_file()
    return root


def lines(root: Path, *where: str) -> list[dict[str, Any]]:
    with catalogue_of(root, fewest=1) as catalogue:
        return catalogue.lines(where)


def read_anew(root: Path) -> list[dict[str, Any]]:
    return [line_of(path, root) for path in recordings_below(root)]


def change(root: Path, rng: random.Random) -> None:
    """One thing that happens to recordings, by a command or by hand."""
    path = rng.choice(list(recordings_below(root)))
    kind = rng.randrange(7)
    if kind == 0:
        keep_verdict(path, {"status": rng.choice(("PASS", "WARN", "FAIL"))})
    elif kind == 1:
        with edit_manifest(path) as manifest:
            manifest["pseudonym"] = rng.choice(PEOPLE)
    elif kind == 2:
        shutil.rmtree(path)
    elif kind == 3:
        path.rename(root / f"moved-{rng.randrange(10**9)}")
    elif kind == 4:
        record(root / f"new-{rng.randrange(10**9)}" / "deep" / "take", rng.randrange(100))
    elif kind == 5:
        (path / "recording.json").write_text("{}")
    else:
        with edit_manifest(path) as manifest:
            manifest["withdrawn"] = {"host_ns": 1}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_it_says_what_reading_every_recording_says(lab: Path, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(12):
        for _ in range(rng.randint(0, 2)):
            readable = [path for path in recordings_below(lab) if "problem" not in line_of(path, lab)]
            if len(readable) == len(list(recordings_below(lab))):
                change(lab, rng)
        assert lines(lab) == read_anew(lab)


def test_what_did_not_change_is_not_read(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(kept, "line_of", lambda path, root: read.append(path.name) or line_of(path, root))
    before = (lab / FILE).read_bytes()
    assert lines(lab) == read_anew(lab)
    assert read == []
    assert (lab / FILE).read_bytes() == before
    keep_verdict(lab / "take-0", {"status": "PASS"})
    assert lines(lab) == read_anew(lab)
    assert set(read) == {"take-0"}


def test_what_changed_only_just_is_read_each_time(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "SETTLED_NS", 10**18)  # two changes within one tick of the file system's clock
    for name in ("Dill", "Sorrel"):
        with edit_manifest(lab / "take-0") as manifest:
            manifest["pseudonym"] = name
        assert lines(lab) == read_anew(lab)


CONDITIONS = {
    "recipe=tea": lambda line: line["recipe"] == "tea",
    "person!=Basil": lambda line: line["person"] != "Basil",
    "seconds>11.5": lambda line: line["seconds"] > 11.5,
    "seconds <= 3": lambda line: line["seconds"] <= 3,
    "path~D1/": lambda line: "d1/" in line["path"],
    "verdict=": lambda line: line["verdict"] is None,
    "consented=yes": lambda line: line["consented"],
    "releasable=no": lambda line: not line["releasable"],
    "started<2025-06-15T15:06:45Z": lambda line: line["started"] < "2025-06-15T15:06:45Z",
}


@pytest.mark.parametrize("text", CONDITIONS)
def test_conditions_find_what_a_filter_finds(lab: Path, text: str) -> None:
    keep_verdict(lab / "take-4", {"status": "PASS"})
    keep_verdict(lab / "take-8", {"status": "WARN"})
    wanted = [line for line in read_anew(lab) if CONDITIONS[text](line)]
    assert lines(lab, text) == wanted
    assert 0 < len(wanted) < 24
    both = lines(lab, text, "recipe=soup")
    assert both == [line for line in wanted if line["recipe"] == "soup"]
    asked = ["list", str(lab), "--where", text, "--where", "recipe=soup", "--json"]
    assert json.loads(CliRunner().invoke(main, asked).stdout)["recordings"] == both


@pytest.mark.parametrize("text", ["colour=red", "recipe", "seconds>long", "releasable=perhaps", "1=1; DROP"])
def test_what_is_no_condition_is_refused(lab: Path, text: str) -> None:
    done = CliRunner().invoke(main, ["list", str(lab), "--where", text])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "is no condition such as" in done.stderr


@pytest.mark.slow
def test_a_damaged_catalogue_is_read_anew(lab: Path) -> None:
    whole, wanted = (lab / FILE).read_bytes(), read_anew(lab)
    rng = random.Random(1)
    spoilt = [whole[: rng.randrange(len(whole))] for _ in range(8)] + [b"", b"no catalogue"]
    for _ in range(30):
        at = rng.randrange(len(whole))
        spoilt.append(whole[:at] + bytes([whole[at] ^ (1 << rng.randrange(8))]) + whole[at + 1 :])
    for content in spoilt:
        (lab / FILE).write_bytes(content)
        assert lines(lab) == wanted
        assert (lab / FILE).read_bytes() != content


@pytest.mark.parametrize("way", ["trigger", "pages", "pipe"])
def test_a_catalogue_from_elsewhere_is_read_anew(lab: Path, way: str) -> None:
    path, at = lab / FILE, len(kept.HEAD) + 32
    with edit_manifest(lab / "take-0") as manifest:  # so that a line is put
        manifest["place"] = "south"
    wanted = read_anew(lab)
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(path.read_bytes()[at:])
        for change in ("INSERT", "DELETE"):
            connection.execute(
                f"CREATE TRIGGER t{change} BEFORE {change} ON line BEGIN SELECT RAISE(FAIL, 'ran'); END"
            )
        content = connection.serialize()
    if way == "pages":
        content = path.read_bytes()[at : at + 4096] + bytes(len(path.read_bytes()) - at - 4096)
    path.write_bytes(kept.HEAD + hashlib.sha256(content).digest() + content)
    if way == "pipe":
        path.unlink()
        os.mkfifo(path)
    assert lines(lab) == wanted


def test_withdrawn_people_leave_nothing_in_it(lab: Path) -> None:
    inner = lab / "d0" / "d1"  # a folder between has a catalogue too
    lines(inner)
    catalogues = (lab / FILE, inner / FILE)
    assert all(b"Sage" in file.read_bytes() for file in catalogues)
    done = CliRunner().invoke(main, ["withdraw", "--person", "Sage", "--data", str(lab)])
    assert done.exit_code == 0, done.output
    for file in catalogues:
        assert b"Sage" not in file.read_bytes()
        assert b"Basil" in file.read_bytes()
    assert lines(lab) == read_anew(lab)
    assert len(lines(lab, "life=withdrawn")) == 8
    assert b"Sage" not in (lab / FILE).read_bytes()


def test_a_recording_that_is_withdrawn_while_it_is_listed_is_not_kept(lab: Path) -> None:
    with edit_manifest(lab / "take-8") as manifest:
        manifest["pseudonym"] = "Nettle"
    shown: list[str] = []

    def meanwhile(_done: int, _whole: int | None, name: str) -> None:
        shown.append(name)
        with edit_manifest(lab / "take-8") as manifest:
            manifest["withdrawn"] = {"host_ns": 1}

    with catalogue_of(lab, fewest=1, show=meanwhile):
        assert shown == ["take-8"]
    assert b"Nettle" not in (lab / FILE).read_bytes()


def test_a_site_is_said_of_what_lies_below_it(lab: Path) -> None:
    assert not any("site" in line for line in lines(lab))
    (lab / "d0" / "lab.toml").write_text('site = "bergen"\n')
    assert {line["path"].split("/")[0] for line in lines(lab, "site=bergen")} == {"d0"}
    assert lines(lab, "site=") == []
    assert len(lines(lab, "site!=bergen")) == 6
    (lab / "d0" / "lab.toml").unlink()
    assert lines(lab, "site=bergen") == []


def test_where_nothing_can_be_kept_it_is_answered_all_the_same(lab: Path) -> None:
    shutil.rmtree(lab / ".kitchensync")
    (lab / ".kitchensync").write_text("in the way")
    assert lines(lab) == read_anew(lab)


def test_few_recordings_leave_no_file_behind(lab: Path) -> None:
    shutil.rmtree(lab / ".kitchensync")
    done = CliRunner().invoke(main, ["list", str(lab), "--rebuild"])
    assert done.exit_code == 0
    assert not (lab / ".kitchensync").exists()
