"""The mover against stores that vanish, fill up, lie and change; the local copy outlives all of them."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from processes import kitchensync

from kitchensync.storage.catalogue.listing import line_of
from kitchensync.storage.copies.copy_log import COPIED, COPY_LOG, FREED, CopyLog, CopyRecord, read_copies
from kitchensync.storage.copies.store_states import (
    StoreReport,
    StoreState,
    keep_store_states,
    state_by,
    store_states,
)
from kitchensync.storage.copies.target import MARKER
from kitchensync.storage.disk.durable import Disk
from kitchensync.storage.errors import CopyUnfinished, PlaceTaken, TargetAway
from kitchensync.storage.installation.own_list import OwnList
from kitchensync.storage.manifest import edit_manifest, read_manifest
from kitchensync.storage.move import mover as mover_module
from kitchensync.storage.move.freeing import FreeRule
from kitchensync.storage.move.mover import run_mover
from kitchensync.storage.move.mover_process import MoverProcess
from kitchensync.storage.recording import open_recording
from kitchensync.storage.verify import verify

pytestmark = pytest.mark.slow

NOW = FreeRule(copies_before_free=2, keep_days=0)


@pytest.fixture
def stores(tmp_path) -> list[Path]:
    """Two empty stores."""
    paths = [tmp_path / "nas-a", tmp_path / "nas-b"]
    for path in paths:
        path.mkdir()
    return paths


def heavy(recording: Path) -> list[Path]:
    return [path for path in recording.rglob("*") if path.suffix == ".MP4" or path.stem.isdigit()]


def test_a_copy_is_whole_and_passes_by_itself(finished, stores):
    (state,) = run_mover([finished], stores[:1])
    assert (state.finished, state.problem, state.files_done) == (True, "", state.files)
    assert verify(stores[0] / "take")["status"] == "PASS"
    begun, *copied = read_copies(finished)
    assert (begun.kind, begun.where, begun.file) == ("begun", str(stores[0]), "")
    assert {line.read for line in copied} <= {"direct", "dropped"}
    assert not list(stores[0].rglob("*.part"))


@pytest.mark.promise("Copies are proven before anything is freed, and a move goes on after a kill")
def test_two_copies_and_age_free_the_local_files_and_nothing_less_does(finished, stores):
    run_mover([finished], stores[:1], rule=NOW)
    assert len(heavy(finished)) == 5
    run_mover([finished], stores, rule=FreeRule(keep_days=None, room_bytes=0))
    assert len(heavy(finished)) == 5
    states = run_mover([finished], stores, rule=NOW)
    assert heavy(finished) == []
    assert [state.freed for state in states] == [5, 5]
    for store in stores:
        assert verify(store / "take")["status"] == "PASS"
    answer = verify(finished)
    assert (answer["status"], answer["life"]) == ("PASS", "elsewhere")
    with open_recording(finished) as recording:
        assert len(recording["hololens/pv"]) == 60


@pytest.mark.parametrize(
    ("rule", "copies", "age_days", "free", "allowed"),
    [
        (FreeRule(), 2, 8, 100 << 30, True),
        (FreeRule(), 2, 6, 100 << 30, False),
        (FreeRule(), 2, 6, 1 << 30, True),
        (FreeRule(), 1, 80, 0, False),
        (FreeRule(copies_before_free=1), 1, 8, 100 << 30, True),
        (FreeRule(keep_days=None), 2, 999, 100 << 30, False),
        (FreeRule(copies_before_free=0), 0, 999, 0, False),
    ],
)
def test_the_rule(rule, copies, age_days, free, allowed):
    assert rule.allows(copies, age_days, free) is allowed


def test_the_same_store_under_two_paths_is_one_copy(finished, stores):
    link = stores[0].with_name("same")
    link.symlink_to(stores[0])
    run_mover([finished], [stores[0], link], rule=NOW)
    assert len(heavy(finished)) == 5


def test_a_copy_that_went_bad_later_is_no_copy(finished, stores):
    run_mover([finished], stores, rule=None)
    film = stores[1] / "take/gopro/GX010001.MP4"
    content = bytearray(film.read_bytes())
    content[5_000_000] ^= 1
    film.write_bytes(content)
    run_mover([finished], stores, rule=NOW)
    assert len(heavy(finished)) == 5


class CorruptingDisk(Disk):
    """Changes a bit of every film after it was synced."""

    def sync(self, handle: int) -> None:
        super().sync(handle)
        name = os.readlink(f"/proc/self/fd/{handle}")
        if "MP4" in name:
            with open(name, "r+b") as file:
                file.seek(1234)
                byte = file.read(1)[0]
                file.seek(1234)
                file.write(bytes([byte ^ 1]))


def test_a_store_that_changes_what_it_was_given_is_caught_and_the_local_copy_stays(finished, stores):
    states = run_mover([finished], stores, rule=FreeRule(1, 0), disk=CorruptingDisk())
    for state in states:
        assert not state.finished
        assert "the copy differs from the original" in state.problem
    assert len(heavy(finished)) == 5
    assert not list(stores[0].rglob("*.MP4*"))
    assert verify(stores[0] / "take")["life"] == "copying"


def test_damage_on_the_local_disk_is_not_copied(finished, stores):
    chunk = finished / "hololens/pv/000002.h5"
    content = bytearray(chunk.read_bytes())
    content[-1] ^= 1
    chunk.write_bytes(content)
    (state,) = run_mover([finished], stores[:1])
    assert "not what was sealed" in state.problem
    assert not (stores[0] / "take/hololens/pv/000002.h5").exists()


def test_a_chunk_far_larger_than_any_is_not_copied(finished, stores):
    with (finished / "hololens/pv/000009.h5").open("wb") as file:
        file.truncate(1 << 40)  # to read it would take half an hour
    (state,) = run_mover([finished], stores[:1])
    assert not state.finished
    assert "000009.h5" in state.problem
    assert not list(stores[0].rglob("000009*"))


def test_a_store_that_is_not_mounted_is_not_filled(finished, stores):
    run_mover([finished], stores[:1])
    shutil.rmtree(stores[0])
    (state,) = run_mover([finished], stores[:1])
    assert "no such folder" in state.problem
    stores[0].mkdir()
    (state,) = run_mover([finished], stores[:1])
    assert f"its {MARKER} is gone" in state.problem
    assert list(stores[0].iterdir()) == []


def test_an_interrupted_copy_goes_on_where_it_was(finished, stores, monkeypatch):
    stop = threading.Event()
    real_write, written = Disk.write, []

    class Counting(Disk):
        def write(self, handle, buffers):
            real_write(self, handle, buffers)
            name = os.readlink(f"/proc/self/fd/{handle}")
            if "MP4" in name:
                written.append(sum(map(len, buffers)))
                if len(written) == 2:
                    stop.set()

    run_mover([finished], stores[:1], stop=stop, disk=Counting())
    part = stores[0] / "take/gopro/GX010001.MP4.part"
    assert part.stat().st_size == 8 << 20
    (state,) = run_mover([finished], stores[:1], disk=Counting())
    assert state.finished
    assert sum(written) == 9 << 20
    assert verify(stores[0] / "take")["status"] == "PASS"


def test_a_running_recording_is_followed_and_finished_when_it_closes(finished, stores, monkeypatch):
    monkeypatch.setattr(mover_module, "FOLLOW_S", 0.01)
    with edit_manifest(finished) as manifest:
        manifest["state"] = "recording"
    passes, reads, real = [], [], OwnList.entries
    monkeypatch.setattr(OwnList, "entries", lambda self: (reads.append(1), real(self))[1])

    def close_later(state):
        passes.append(state.files_done)
        if len(passes) == 8:
            assert read_manifest(stores[0] / "take")["copying"]
            with edit_manifest(finished) as manifest:
                manifest["state"] = "complete"

    (state,) = run_mover([finished], stores[:1], follow=True, report=close_later)
    assert (state.finished, len(reads)) == (True, 1)
    assert verify(stores[0] / "take")["status"] == "PASS"


def test_a_store_that_comes_back_gets_everything(finished, stores, monkeypatch):
    monkeypatch.setattr(mover_module, "WAIT_FIRST_S", 0.01)
    monkeypatch.setattr(mover_module, "WAIT_LONGEST_S", 0.02)
    stores[0].rmdir()
    problems = []

    def back(state):
        problems.append(state.problem)
        if len(problems) == 3:
            stores[0].mkdir()

    (state,) = run_mover([finished], stores[:1], follow=True, report=back)
    assert "no such folder" in problems[0]
    assert state.finished


def test_a_copy_in_progress_states_what_it_lacks_and_is_used_by_nobody(finished, stores):
    class Ending(Disk):
        def write(self, handle, buffers):
            if "000002" in os.readlink(f"/proc/self/fd/{handle}"):
                raise OSError(28, "No space left on device")
            super().write(handle, buffers)

    run_mover([finished], stores[:1], disk=Ending())
    said = verify(stores[0] / "take")
    assert (said["life"], said["status"], said["checked"]) == ("copying", "WARN", False)
    (reason,) = said["reasons"]
    assert "4 of 5 files are missing, such as hololens/calibration/pv.h5" in reason
    assert "run `kitchensync move DATA/take --to STORE`" in reason
    with pytest.raises(CopyUnfinished), open_recording(stores[0] / "take"):
        pass
    (line,) = (line_of(stores[0] / "take", stores[0]),)
    assert (line["life"], line.get("verdict")) == ("copying", None)
    (state,) = run_mover([finished], stores[:1])
    assert state.state == "copied"
    assert verify(stores[0] / "take")["status"] == "PASS"


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (OSError(errno.EROFS, ""), "refused"),
        (OSError(errno.EACCES, ""), "refused"),
        (OSError(errno.ENOSPC, ""), "unfinished"),
        (OSError(errno.EIO, ""), "unfinished"),
        (OSError(errno.ESTALE, ""), "away"),
        (TargetAway(Path("nas"), "there is no such folder"), "away"),
        (PlaceTaken("nas/take", "another recording"), "refused"),
    ],
)
def test_an_error_gives_the_state_of_its_store(error, state):
    assert state_by(error) == state


def test_the_states_of_stores_follow_the_copies(finished, stores):
    away = StoreReport(str(stores[1]), StoreState.AWAY, "there is no such folder")
    keep_store_states(finished, [StoreReport(str(stores[0]), StoreState.UNFINISHED, "full"), away])
    run_mover([finished], stores[:1])
    assert {one.place: one.state for one in store_states(finished)} == {
        str(stores[0]): "copied",
        str(stores[1]): "away",
    }
    run_mover([finished], stores[1:])
    assert [one.state for one in store_states(finished)] == ["copied", "copied"]
    with edit_manifest(finished) as manifest:
        manifest["place"] = "kitchen 4"
    assert [one.state for one in store_states(finished)] == ["unfinished", "unfinished"]


def test_a_full_or_read_only_store_is_a_problem_in_words(finished, stores):
    class Full(Disk):
        def write(self, handle, buffers):
            if "MP4" in os.readlink(f"/proc/self/fd/{handle}"):
                raise OSError(28, "No space left on device")
            super().write(handle, buffers)

    (state,) = run_mover([finished], stores[:1], disk=Full())
    assert (state.finished, state.problem) == (
        False,
        "no space left on device; check the disk, then run it again",
    )
    assert len(heavy(finished)) == 5


def test_what_changed_since_is_copied_again(finished, stores):
    run_mover([finished], stores[:1])
    (finished / "events/tablet.jsonl").write_bytes(b"")
    with edit_manifest(finished) as manifest:
        manifest["place"] = "kitchen 4"
    run_mover([finished], stores[:1])
    assert json.loads((stores[0] / "take/recording.json").read_text())["place"] == "kitchen 4"


def test_chunks_that_were_packed_are_dropped_from_the_store_too(finished, stores):
    from kitchensync.storage.move.archive import archive

    run_mover([finished], stores[:1])
    archive(finished)
    run_mover([finished], stores[:1])
    assert [path.name for path in (stores[0] / "take/hololens/pv").iterdir()] == ["000001-000003.h5"]
    assert verify(stores[0] / "take")["status"] == "PASS"


def test_a_torn_line_of_the_book_is_cut(finished, stores):
    run_mover([finished], stores[:1])
    with (finished / COPY_LOG).open("ab") as file:
        file.write(b'{"kind": "cop')
    (state,) = run_mover([finished], stores[:1])
    assert state.finished
    assert (finished / COPY_LOG).read_bytes().endswith(b"\n")


def test_the_mover_of_a_recorder_ends_when_asked_and_has_the_lowest_priority(finished, stores, tmp_path):
    with edit_manifest(finished) as manifest:
        manifest["state"] = "recording"
    mover = MoverProcess(finished, stores[:1], tmp_path / "mover.log")
    waiter = threading.Event()
    while not list(stores[0].rglob("000003.h5")):
        assert mover.process.poll() is None, (tmp_path / "mover.log").read_text()
        waiter.wait(0.05)
    assert os.getpriority(os.PRIO_PROCESS, mover.process.pid) == 19
    mover.stop(timeout_s=20)
    assert mover.process.poll() == 3
    (told,) = mover.progress()
    assert (told["target"], told["files_done"] >= 3, told["finished"]) == (str(stores[0]), True, False)
    assert mover.progress() == [told], "nothing new was said"


def test_the_command_says_what_it_did_and_fails_with_a_store_that_is_away(finished, stores):
    done = kitchensync("move", finished, "--to", stores[0], "--json")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["schema"]) == (0, "move/1")
    assert "same disk" in done.stderr
    away = kitchensync("move", finished, "--to", stores[0] / "gone")
    assert away.returncode == 1
    assert "no such folder" in away.stderr
    assert kitchensync("move", finished).returncode == 2


BEHIND_THE_CACHE = """
import os, sys
from pathlib import Path
from kitchensync.storage.disk.durable import Disk
from kitchensync.storage.move.mover import run_mover
image, store, take = map(Path, sys.argv[1:])

class LyingStore(Disk):
    '''The platter keeps something else than what the page cache of the store remembers.'''
    def sync(self, handle):
        super().sync(handle)
        name = os.readlink(f"/proc/self/fd/{handle}")
        if "MP4" in name:
            good = Path(name).read_bytes()
            content = image.read_bytes()
            place = content.index(good[4096 * 40 : 4096 * 41])
            with image.open("r+b") as file:
                file.seek(place)
                file.write(bytes(4096))
                os.fsync(file.fileno())
            assert Path(name).read_bytes() == good, "the cache still has the good bytes"

(state,) = run_mover([take], [store], disk=LyingStore())
print(state.problem)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a disk image needs root")
def test_a_disk_that_lies_behind_the_page_cache_is_caught(finished, tmp_path):
    image, store = tmp_path / "image", tmp_path / "store"
    store.mkdir()
    script = (
        f"truncate -s 64M {image} && mkfs.ext4 -q -F {image} && mount -o loop {image} {store} || exit 77\n"
        f"{sys.executable} -c '{BEHIND_THE_CACHE.replace(chr(39), chr(34))}' {image} {store} {finished}\n"
        f"code=$?; umount {store}; exit $code"
    )
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("this computer mounts no disk images")
    assert done.returncode == 0, done.stderr
    assert "the copy differs from the original" in done.stdout


def test_a_store_that_is_unmounted_in_the_middle_leaves_nothing_below_its_mount_point(finished, stores):
    store, away = stores[0], stores[0].with_name("away")

    class Unmounting(Disk):
        opened = 0

        def reopen(self, path: Path, size: int) -> int:
            self.opened += 1
            if self.opened == 2:
                store.rename(away)
                path.parent.mkdir(parents=True)  # as the folder was made a moment before the mount went
            return super().reopen(path, size)

    (state,) = run_mover([finished], [store], disk=Unmounting())
    assert not state.finished
    assert "is the store mounted?" in state.problem
    assert [path for path in store.rglob("*") if path.is_file()] == []
    shutil.rmtree(store)
    away.rename(store)
    assert run_mover([finished], [store])[0].finished
    assert verify(store / "take")["status"] == "PASS"


@pytest.mark.promise("Copies are proven before anything is freed, and a move goes on after a kill")
def test_a_mover_that_was_killed_is_started_again_and_goes_on(finished, stores, tmp_path, monkeypatch):
    monkeypatch.setattr("kitchensync.storage.move.mover_process.REVIVE_S", 0.0)
    mover = MoverProcess(finished, stores[:1], tmp_path / "mover.log")
    assert mover.restart() is None
    mover.process.kill()
    mover.process.wait()
    assert mover.restart() == -9
    assert mover.process.wait(timeout=60) == 0
    assert mover.restart() is None, "one that has done everything stays away"
    assert verify(stores[0] / "take")["status"] == "PASS"


def test_a_store_that_goes_before_its_first_copy_is_not_taken_for_a_new_one(finished, stores, monkeypatch):
    monkeypatch.setattr(mover_module, "WAIT_FIRST_S", 0.01)
    store, stop, problems = stores[0], threading.Event(), []

    class Going(Disk):
        def reopen(self, path: Path, size: int) -> int:
            store.rename(store.with_name("away"))
            store.mkdir()
            raise OSError("the store is gone")

    def hear(state) -> None:
        problems.append(state.problem)
        if len([problem for problem in problems if problem]) == 2:
            stop.set()

    run_mover([finished], [store], follow=True, stop=stop, report=hear, disk=Going())
    assert "is the store mounted?" in problems[-1]
    assert list(store.iterdir()) == []


def test_a_new_recording_does_not_take_an_empty_mount_point_for_a_new_store(finished, stores):
    """Its own copy log knows no store yet; those of the recordings beside it do."""
    store, away = stores[0], stores[0].with_name("away")
    run_mover([finished], [store], rule=None)
    later = finished.with_name("later")
    shutil.copytree(finished, later)
    (later / COPY_LOG).unlink()
    store.rename(away)
    store.mkdir()
    (state,) = run_mover([later], [store], rule=None)
    assert "is the store mounted?" in state.problem
    assert list(store.iterdir()) == []
    store.rmdir()
    away.rename(store)
    (state,) = run_mover([later], [store], rule=None)
    assert (state.finished, state.problem) == (True, "")
    other = stores[1]
    assert run_mover([later], [other], rule=None)[0].finished, "a store that is new is one"


def test_the_book_names_only_copies_that_stood_the_proof_when_it_freed(finished, stores, tmp_path):
    third = tmp_path / "nas-c"
    third.mkdir()
    run_mover([finished], [*stores, third], rule=None)
    film = third / "take/gopro/GX010001.MP4"
    film.write_bytes(film.read_bytes()[:-1] + b"?")
    run_mover([finished], [*stores, third], rule=NOW)
    assert heavy(finished) == []
    freed = {line.where for line in read_copies(finished) if line.kind == FREED and line.file.endswith("MP4")}
    assert freed == {str(store) for store in stores}


def test_a_line_of_which_only_a_part_found_room_is_an_error(finished):
    line = CopyRecord(COPIED, "gopro/GX010001.MP4", 1, "0" * 64, 1, "store", "/store", "direct")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with CopyLog(finished) as log:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
        try:
            with pytest.raises(OSError, match="No space left"):
                log.write(line)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with CopyLog(finished) as log:
        assert log.copies == {}
        log.write(line)
    assert read_copies(finished) == [line]


def test_a_recording_that_says_no_time_of_its_end_is_not_old(finished, stores):
    with edit_manifest(finished) as manifest:
        manifest["started"] = manifest["stopped"] = {"host_ns": 1}
    states = run_mover([finished], stores, rule=FreeRule(keep_days=1, room_bytes=0))
    assert [(one.finished, one.freed) for one in states] == [(True, 0)] * 2
