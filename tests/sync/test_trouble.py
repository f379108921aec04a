"""Trouble of the computer is no finding about data: the last answer stays, the reason is named, exit code 1."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from processes import COMMAND
from rehearsal.small_disks import can_mount, on_small_disk
from small_recordings import SEED, write_film

from kitchensync.cli import main
from kitchensync.storage.manifest import edit_manifest
from kitchensync.sync.batch.batch import synchronize_all

pytestmark = pytest.mark.slow


def run(*words: object):
    return CliRunner().invoke(main, [str(word) for word in words])


def entry(done) -> dict:
    (answer,) = json.loads(done.stdout)["recordings"]
    return answer


def contents(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def synchronized(made, tmp_path_factory) -> Path:
    """A recording that was aligned."""
    take = tmp_path_factory.mktemp("aligned") / "take1"
    shutil.copytree(made[0] / "take1", take)
    assert run("sync", take).exit_code == 0
    return take


@pytest.fixture
def aligned(synchronized, tmp_path) -> Path:
    shutil.copytree(synchronized, tmp_path / "take1")
    return tmp_path / "take1"


@pytest.mark.parametrize("where", ["write_table", "savez_compressed", "write_json", "rename"])
def test_a_disk_that_is_full_at_any_file_leaves_the_last_set(aligned, monkeypatch, where):
    before = contents(aligned)

    def full(*_args, **_more):
        raise OSError(errno.ENOSPC, "No space left on device")

    places = {
        "write_table": "pyarrow.parquet.write_table",
        "savez_compressed": "numpy.savez_compressed",
        "write_json": "kitchensync.sync.result.state.write_json",
        "rename": "kitchensync.storage.disk.durable.Disk.rename",
    }
    monkeypatch.setattr(places[where], full)
    done = run("sync", aligned, "--json")
    assert done.exit_code == 1
    answer = entry(done)
    assert (answer["status"], answer["checked"]) == ("aligned", False)
    assert "no space left on device" in answer["error"].lower()
    assert answer["reasons"][-1].startswith("not computed again: ")
    assert "no space left on device" in done.stderr.lower()
    assert contents(aligned) == before


def test_a_recording_without_an_answer_is_not_done(take, monkeypatch):
    before = contents(take)

    def no_memory(*_args, **_more):
        raise MemoryError

    monkeypatch.setattr("pyarrow.parquet.write_table", no_memory)
    done = run("sync", take, "--json")
    answer = entry(done)
    assert (done.exit_code, answer["status"]) == (1, "not_done")
    assert "not enough memory" in answer["error"]
    assert contents(take) == before
    assert not (take / "sync").exists()


def test_a_camera_file_that_may_not_be_read_is_not_judged(aligned, monkeypatch):
    before = contents(aligned)

    def denied(_path):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("kitchensync.sensors.gopro.mp4.boxes.read_moov", denied)
    done = run("sync", aligned, "--json")
    assert (done.exit_code, entry(done)["status"]) == (1, "aligned")
    assert "permission denied" in entry(done)["error"]
    assert contents(aligned) == before


@pytest.mark.skipif(not can_mount(), reason="this user may not mount a small disk")
def test_a_really_full_disk(aligned, tmp_path):
    """The recording lies on a disk of its own that has no room left."""
    disk, out = tmp_path / "disk", tmp_path / "out"
    disk.mkdir()
    out.mkdir()
    script = (
        f"cp -a {shlex.quote(str(aligned))} {disk}/\n"
        f"dd if=/dev/zero of={disk}/filler bs=4k 2>/dev/null\n"
        f"{COMMAND} sync {disk}/take1 --json >{out}/answer.json 2>{out}/stderr\n"
    )
    size = sum(path.stat().st_size for path in aligned.rglob("*") if path.is_file()) // 2**20 + 2
    kept = tmp_path / "kept"
    kept.mkdir()
    done = subprocess.run(
        on_small_disk(["sh", "-c", script], kept, disk, size, ":"), check=False, timeout=120
    )
    assert done.returncode == 1
    (answer,) = json.loads((out / "answer.json").read_text())["recordings"]
    assert (answer["status"], answer["checked"]) == ("aligned", False)
    assert "no space left" in (out / "stderr").read_text().lower()
    assert contents(kept / "take1") == contents(aligned)


def test_a_master_that_nobody_has_is_wrong_usage(aligned):
    before = contents(aligned.parent)
    done = run("sync", aligned, "--master", "pw", "--json")
    assert done.exit_code == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "--master pw: no recording has it; choose one of" in done.stderr
    assert json.loads(done.stdout)["status"] == "refused"
    assert contents(aligned.parent) == before


@pytest.mark.parametrize("name", ["pv", "hololens/pv", "gopro", "gopro/video"])
def test_every_name_of_a_master_is_taken(aligned, name):
    assert run("sync", aligned, "--master", name).exit_code == 0


@pytest.mark.parametrize("left", [None, 0, 10, 5000, -1])
def test_a_lost_camera_file_leaves_the_index_of_the_headset(aligned, left):
    """`left`: bytes that are still there, -1 for the half; None: the file is gone."""
    film = aligned / "gopro" / "GX010001.MP4"
    with edit_manifest(aligned) as manifest:
        manifest["files"]["gopro/GX010001.MP4"] = {"sha256": "0" * 64}
    if left is None:
        film.unlink()
    else:
        os.truncate(film, left if left >= 0 else film.stat().st_size // 2)
    done = run("sync", aligned, "--json")
    answer = entry(done)
    assert (done.exit_code, answer["status"]) == (1, "not_aligned")
    assert "error" not in answer
    (pair,) = answer["pairs"]
    assert pair["status"] == "not_aligned"
    assert pair["reasons"]
    table = pq.read_table(aligned / "sync" / "index.parquet")
    assert answer["index"]["clock"] == "hl2_qpc_100ns"
    assert len(table) > 700
    assert not [name for name in table.column_names if name.startswith("gopro")]
    assert any("file" in reason or "GX010001" in reason for reason in answer["reasons"] + pair["reasons"])


def test_an_adopted_film_gets_an_index_of_its_own_frames(tmp_path):
    write_film(tmp_path / "card", SEED, 120)
    film = tmp_path / "card" / "GX010001.MP4"
    assert run("adopt", "film1", film, "--data", tmp_path / "data").exit_code == 0
    done = run("sync", tmp_path / "data" / "film1", "--json")
    assert done.exit_code == 0, done.stderr
    answer = entry(done)
    assert (answer["status"], answer["pairs"], answer["master"]) == ("nothing_to_align", [], "video")
    ticks = pq.read_table(tmp_path / "data" / "film1" / "sync" / "index.parquet")["master_ticks"].to_pylist()
    assert len(ticks) == 120
    assert ticks[0] == 0
    assert ticks[1] == pytest.approx(1e7 * 1001 / 30000, abs=1)


def test_a_process_that_dies_takes_no_verdict_along(aligned, monkeypatch):
    """As when the system ends it for want of memory."""
    shutil.copytree(aligned, aligned.parent / "take2")
    before = contents(aligned)

    class Pool:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def submit(self, *_):
            from concurrent.futures import Future
            from concurrent.futures.process import BrokenProcessPool

            job = Future()
            job.set_exception(BrokenProcessPool("gone"))
            return job

    monkeypatch.setattr("kitchensync.storage.batch.runner.pool_of", lambda *_: Pool())
    answer = synchronize_all([aligned.parent], workers=2, again=True)
    assert [one["status"] for one in answer["recordings"]] == ["aligned", "aligned"]
    assert all("process that worked on it died" in one["error"] for one in answer["recordings"])
    assert contents(aligned) == before
