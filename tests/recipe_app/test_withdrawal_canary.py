"""A person is searched for after the withdrawal: bytes, spectra, decoded pictures and numbers of motion."""

from __future__ import annotations

import hashlib
import random
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from paused_recording import FILM, Truth, write_paused
from planted import MOTION, PICTURE, TONE, Planted
from s3_server import s3_server
from typed_commands import answer as run

from kitchensync.cli import main
from kitchensync.recipe_app.store.app_records import new_id
from kitchensync.storage.manifest import edit_manifest
from kitchensync.storage.move.freeing import FreeRule
from kitchensync.storage.move.mover import run_mover

# Libraries of others: their clients leave the closing of sockets to the garbage collector.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
NAME = "Wilhelmina Canary"
BASIL, CLOVE = Planted(1, 3217), Planted(2, 2459)
"""What their pictures, voices and heads are known by."""


SIGNS = {
    "recordings/soup_1": {PICTURE, TONE, MOTION},
    "store/soup_1": {PICTURE, TONE, MOTION},
    "s3 lab": {PICTURE, TONE, MOTION},
    "joined-soup_1": {PICTURE, TONE},
    "report.html": {PICTURE},
    "refused-GX010001": {PICTURE},
    "queue.aof": {PICTURE},
    "app.db": {TONE},
    "backup!": {TONE},
}
"""Where a person is seen, heard and felt before the withdrawal."""


class Hidden:
    """What is planted of one person, and where it is found again."""

    def __init__(self, who: Planted, words: list[bytes], truth: Truth, other: Truth) -> None:
        self.who = who
        theirs = b"".join(everything_in(other))  # both films begin with the same tone
        own = [part for part in map(_part, everything_in(truth)) if part not in theirs]
        self.wanted = [*words, *random.Random(5).sample(own, 400)]

    def found(self, contents: dict[str, bytes]) -> dict[str, int]:
        """Files in which any of it stands, with how many of the planted."""
        counts = {name: sum(one in content for one in self.wanted) for name, content in contents.items()}
        return {name: count for name, count in counts.items() if count}

    def signs(self, contents: dict[str, bytes]) -> dict[str, set[str]]:
        """Files in which a picture, a tone or a walk of this person is, once it is decoded."""
        signs = {name: self.who.signs_in(content) for name, content in contents.items()}
        return {name: one for name, one in signs.items() if one}


def everything_in(truth: Truth) -> list[bytes]:
    payloads = [payload for told in truth.packets.values() for _, payload in told]
    return payloads + [sample for _, sample in (*truth.pictures, *truth.sounds) if len(sample) > 64]


def _part(payload: bytes) -> bytes:
    """Take the part of a payload that is nobody else's; a chunk holds it as it is."""
    return payload[len(payload) // 4 :][:48]


def contents(*roots: Path) -> dict[str, bytes]:
    """All files below some folders; of zip files what is in them too."""
    held: dict[str, bytes] = {}
    for path in (path for root in roots for path in sorted(root.rglob("*")) if path.is_file()):
        held[str(path)] = path.read_bytes()
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                held |= {f"{path}!{name}": archive.read(name) for name in archive.namelist()}
    return held


def in_bucket(url: str) -> dict[str, bytes]:
    import s3fs

    there = s3fs.S3FileSystem(skip_instance_cache=True)
    return {f"s3 {name}": there.cat_file(name) for name in there.find(url)}


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[str]:
    import s3fs

    (tmp_path / "s3").mkdir()
    with s3_server(tmp_path / "s3"):
        s3fs.S3FileSystem(skip_instance_cache=True).mkdir("lab")
        yield "s3://lab/kitchen"
        s3fs.S3FileSystem.clear_instance_cache()


def closed(kitchen: Any, place: Path, name: str, person: str, who: Planted) -> Truth:
    """What was cooked into `name`, as a closed recording in which every packet is known."""
    truth = write_paused(place / name, [], seed=2 + who.seed, who=lambda _: who)
    shutil.copytree(place / name, kitchen.data / name, dirs_exist_ok=True)
    with edit_manifest(kitchen.data / name) as manifest:
        manifest |= {"pseudonym": person, "virtual": True, "place": f"kitchen of {person}"}
    return truth


def cook(kitchen: Any, client: Any, name: str, said: str, who: Planted) -> str:
    """A recording with a remark and a voice note."""
    choice = {"op_id": new_id(kitchen.utc_ns), "recipe": "tea_and_toast", "seed": 3, "folder": name}
    recording = str(client.post("/api/v1/recordings", json=choice).json()["recording"])
    sound = who.wave(0.5) + said.encode()
    address = f"/api/v1/voice/{recording}/{hashlib.sha256(sound).hexdigest()}"
    assert client.put(address, content=sound, headers={"content-type": "audio/wav"}).status_code == 200
    note = kitchen.operation(recording, "note", {"text": said}, actor="")
    assert "error" not in client.post("/api/v1/ops", json={"operations": [note]}).json()["receipts"][0]
    return recording


def test_nothing_of_a_person_is_found_anywhere_and_nothing_of_another_is_touched(
    kitchen: Any, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    remarks = {"soup_1": f"said by {NAME}", "soup_2": "said by somebody else"}
    kitchen.record("soup_2")
    for name, said in remarks.items():
        is_hers = name == "soup_2"
        cook(
            kitchen,
            kitchen.signed_in("Clove") if is_hers else kitchen.tablet,
            name,
            said,
            CLOVE if is_hers else BASIL,
        )
    truths = {
        name: closed(kitchen, tmp_path / "made", name, person, who)
        for name, person, who in (("soup_1", "Basil", BASIL), ("soup_2", "Clove", CLOVE))
    }
    shutil.rmtree(tmp_path / "made")
    store = tmp_path / "store"
    store.mkdir()
    takes = [kitchen.data / name for name in truths]
    run_mover(takes, [store], rule=FreeRule(copies_before_free=9))
    for take in takes:
        run("upload", take, bucket)
        run("gopro", "join", take / FILM, "--out", f"joined-{take.name}.mp4", "--strip-location")
        assert CliRunner().invoke(main, ["report", str(take)]).exit_code == 0
        CliRunner().invoke(
            main, ["calibrate", "gopro", str(take / FILM), "--data", str(tmp_path)]
        )  # no board
        queue = kitchen.data / ".kitchensync" / take.name
        queue.mkdir(parents=True)
        (queue / "queue.aof").write_bytes(
            b"".join(one for _, one in truths[take.name].packets["hololens/pv"])
        )
    run("backup", "kitchen.backup", "--data", kitchen.data)
    words = [NAME.encode(), b"Basil", remarks["soup_1"].encode()]
    basil = Hidden(BASIL, words, truths["soup_1"], truths["soup_2"])
    clove = Hidden(CLOVE, [b"Clove", remarks["soup_2"].encode()], truths["soup_2"], truths["soup_1"])

    def everywhere() -> dict[str, bytes]:
        return contents(tmp_path) | in_bucket(bucket)

    before = everywhere()
    places = " ".join(basil.found(before))
    for part in (
        *("recordings/soup_1", "store/soup_1", "s3 lab", "joined-soup_1", "queue.aof", "app.db"),
        *("backup!",),
    ):
        assert part in places, f"nothing was planted in {part}"
    signs = basil.signs(before)
    for part, kinds in SIGNS.items():
        assert kinds <= set().union(*(one for name, one in signs.items() if part in name)), part
    said = run("withdraw", "--person", "Basil", "--data", kitchen.data)
    assert [one["place"] for one in said["places"] if one["open"]] == ["tablet Tablet"]
    after = everywhere()
    assert (basil.found(after), basil.signs(after)) == ({}, {})
    theirs_seen = {name: one for name, one in clove.signs(before).items() if "app.db" not in name}
    assert {name: one for name, one in clove.signs(after).items() if "app.db" not in name} == theirs_seen
    mine = {
        name: content for name, content in before.items() if "soup_2" in name and "tablet.jsonl" not in name
    }
    assert mine
    assert {name: after.get(name) for name in mine} == mine, "another person's files are bit-identical"
    left, theirs = clove.found(after), clove.found(before)
    assert {name: count for name, count in theirs.items() if "app.db" not in name} == {
        name: count for name, count in left.items() if "app.db" not in name
    }, "all that was planted of the other is where it was"
    assert any("app.db" in name for name in left)
