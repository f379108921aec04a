"""Clips of cameras in a session: complete, lost and found again, ended by themselves, several at a time."""

from __future__ import annotations

import json
import os
import shutil
import zlib
from copy import deepcopy
from pathlib import Path

import pytest
from cameras import virtual_camera
from click.testing import CliRunner
from kitchen_clock import MovedClock
from waiting import until

from kitchensync.capture.camera import camera_recorder as camera_clip
from kitchensync.capture.camera.camera_recorder import CameraRecorder
from kitchensync.capture.camera.fetch import fetch_pending, pending_in
from kitchensync.capture.camera.files import fetch_files
from kitchensync.capture.camera.watch import CameraHealth, CameraWatch
from kitchensync.capture.lock import hold_lock
from kitchensync.capture.plan import RUNNING, runtime_folder
from kitchensync.cli import main
from kitchensync.sensors.gopro.control import camera as gopro_http
from kitchensync.sensors.gopro.control.camera import GoProHttp
from kitchensync.sensors.gopro.control.camera_types import CameraState as Answer
from kitchensync.sensors.gopro.control.settings import set_clock_now
from kitchensync.shell.host_clock import host_ns
from kitchensync.storage.manifest import write_json
from kitchensync.storage.move.mover import run_mover
from kitchensync.virtual_kitchen.gopro.camera import VirtualCamera
from kitchensync.virtual_kitchen.gopro.card import CardFile
from kitchensync.virtual_kitchen.gopro.server import VirtualGoPro

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("WATCH_S", 0.1), ("RETRY_S", 0.1), ("RETRY_LIMIT_S", 1.0)):
        monkeypatch.setattr(camera_clip, name, value)
    monkeypatch.setattr(camera_clip, "measure_clock", lambda camera: None)
    monkeypatch.setattr(camera_clip, "set_clock_now", lambda camera, zone: None)
    for name in ("POLL_S", "RETRY_S"):
        monkeypatch.setattr(gopro_http, name, 0.02)


def media(folder: Path) -> dict:
    return json.loads((folder / "media.json").read_text())


def start_clip(take: CameraRecorder) -> None:
    take.start()
    until(lambda: take.state.state == "recording" and take.state.recorded_s is not None, "a growing video")


def stop_clip(take: CameraRecorder) -> None:
    take.end()
    take.join(timeout=120)
    assert not take.is_alive()


def record_clip(take: CameraRecorder) -> None:
    start_clip(take)
    stop_clip(take)


def test_chapters_are_fetched_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(camera_clip, "set_clock_now", set_clock_now)
    clock = MovedClock(runs=True)
    with virtual_camera(tmp_path / "sim", chapter_s=1.0, clock=clock) as (gopro, url):
        take = CameraRecorder("gopro", url, tmp_path / "rec" / "gopro")
        assert take.prepare()["notes"] == []
        start_clip(take)
        clock.stand()
        clock.move(2.1)
        until(lambda: len(gopro.camera.card.files()) >= 2, "a second chapter")
        clock.run()
        stop_clip(take)
        truth = {file["file"]: file["sha256"] for file in gopro.camera.kitchen.truth.as_dict()["gopro"]}
    entry = media(tmp_path / "rec" / "gopro")
    assert entry["state"] == "done"
    assert {file["file"]: file["sha256"] for file in entry["files"]} == truth
    assert [file["file"] for file in entry["files"]][:2] == ["GX010001.MP4", "GX020001.MP4"]
    content = (tmp_path / "rec" / "gopro" / "GX010001.MP4").read_bytes()
    step = entry["files"][0]["blocks"]["block_bytes"]
    checksums = [zlib.crc32(content[at : at + step]) for at in range(0, len(content), step)]
    assert entry["files"][0]["blocks"]["crc32"] == checksums
    assert entry["shutter_on"]["before_host_ns"] < entry["shutter_off"]["observed_host_ns"]
    assert entry["state_at_start"]["settings"]["83"] == 0


def test_a_camera_that_comes_back_in_time(tmp_path: Path) -> None:
    with virtual_camera(tmp_path / "sim", "gopro_vanish") as (gopro, url):
        take = CameraRecorder("gopro", url, tmp_path / "gopro")
        take.prepare()
        start_clip(take)
        gopro.camera.begin_fault("gopro_vanish")
        until(lambda: take.state.problem, "the camera's problem")
        gopro.camera.end_fault("gopro_vanish")
        until(lambda: take.state.gaps, "the return of the camera")
        stop_clip(take)
    entry = media(tmp_path / "gopro")
    assert entry["state"] == "done"
    assert len(entry["gaps"]) == 1
    assert "did not answer" in take.state.problem
    assert len(entry["files"]) == 1


@pytest.mark.promise("A camera's film comes home, or the camera's trouble is named")
def test_a_vanished_camera_is_found_and_fetched_later(tmp_path: Path) -> None:
    recording = tmp_path / "data" / "take-1"
    with virtual_camera(tmp_path / "sim", "gopro_vanish") as (gopro, url):
        take = CameraRecorder("gopro", url, recording / "gopro")
        device = take.prepare()
        start_clip(take)
        gopro.camera.begin_fault("gopro_vanish")
        stop_clip(take)
        assert take.state.state == "pending"
        assert "fetch" in take.state.problem
        assert media(recording / "gopro")["files"] == []
        manifest = {"schema": "recording/1", "recording": "take-1", "devices": {"gopro": device}, "files": {}}
        manifest |= {"state": "complete", "streams": {}}
        write_json(recording / "recording.json", manifest)
        gopro.camera.end_fault("gopro_vanish")
        done = CliRunner().invoke(main, ["gopro", "fetch", str(tmp_path / "data"), "--json"])
        assert done.exit_code == 0, done.output
        truth = gopro.camera.kitchen.truth.as_dict()["gopro"]
    assert json.loads(done.stdout)["takes"][0]["files"] == ["GX010001.MP4"]
    entry = media(recording / "gopro")
    assert (entry["state"], entry["files"][0]["sha256"]) == ("done", truth[0]["sha256"])
    again = CliRunner().invoke(main, ["gopro", "fetch", str(tmp_path / "data")])
    assert "nothing is pending" in again.stdout


def test_a_failed_listing_after_the_stop_leaves_the_video_on_its_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with virtual_camera(tmp_path / "sim") as (_, url):
        take = CameraRecorder("gopro", url, tmp_path / "rec" / "gopro")
        take.prepare()
        start_clip(take)
        listed = GoProHttp.media
        monkeypatch.setattr(GoProHttp, "media", lambda camera: camera._ask("/gopro/media/lost"))
        stop_clip(take)
        serial = media(tmp_path / "rec" / "gopro")["serial"]
        assert take.state.state == media(tmp_path / "rec" / "gopro")["state"] == "pending"
        assert "HTTP 404" in take.state.problem
        assert f"its video stays on the card of {serial}" in take.state.problem
        monkeypatch.setattr(GoProHttp, "media", listed)
        (pending,) = pending_in(tmp_path / "rec")
        fetched = fetch_pending(pending, url, proxies=False, print_line=lambda _: None)
        assert fetched is not None
        assert (len(fetched.files), fetched.problem) == (1, "")


def test_a_fetch_that_waited_for_another_one_writes_nothing_old(tmp_path: Path) -> None:
    recording = tmp_path / "data" / "take-1"
    with virtual_camera(tmp_path / "sim") as (_, url), GoProHttp(url) as camera:
        before = [[file.folder, file.name] for file in camera.media()]
        camera.shutter(True)
        camera.shutter(False)
        (recording / "gopro").mkdir(parents=True)
        about = {"state": "pending", "address": url, "serial": camera.info().serial, "before": before}
        write_json(recording / "gopro" / "media.json", {**about, "files": []})
        write_json(recording / "recording.json", {"schema": "recording/1", "recording": "take-1"})
        (seen_by_both,) = pending_in(tmp_path / "data")
        first = fetch_pending(deepcopy(seen_by_both), url, proxies=False, print_line=print)
        assert (first.files, first.problem) == (["GX010001.MP4"], "")
        written = (recording / "gopro" / "media.json").read_bytes()
        second = fetch_pending(seen_by_both, url, proxies=False, print_line=print)
    assert (second.files, second.problem) == ([], "")
    assert (recording / "gopro" / "media.json").read_bytes() == written


@pytest.mark.parametrize(
    ("fault", "message"),
    [("card_full", "card: full"), ("overheat", "overheating"), ("write_error", "card too slow")],
)
def test_a_clip_that_ends_by_itself_is_a_problem_and_its_file_is_fetched(
    tmp_path: Path, fault: str, message: str
) -> None:
    with virtual_camera(tmp_path / "sim", f"gopro_{fault}") as (gopro, url):
        take = CameraRecorder("gopro", url, tmp_path / "gopro")
        take.prepare()
        start_clip(take)
        gopro.camera.begin_fault(f"gopro_{fault}")
        until(lambda: "by itself" in take.state.problem, "the camera's problem")
        stop_clip(take)
    assert "stopped recording by itself" in take.state.problem
    assert message in take.state.problem
    assert len(media(tmp_path / "gopro")["files"]) == 1


def changed(gopro: VirtualGoPro, take: CameraRecorder, fault: str) -> int:
    """Remove the camera until its loss is noticed, then bring it back; return a time (host_ns) while it was away."""
    gopro.camera.begin_fault(fault)
    until(lambda: "not answer" in take.state.problem, "the camera's problem")
    away_ns = host_ns()
    gopro.camera.end_fault(fault)
    until(lambda: take.state.gaps, "the return of the camera")
    return away_ns


def test_a_changed_battery_is_a_named_gap_between_two_clips(tmp_path: Path) -> None:
    clock = MovedClock(runs=True)
    with virtual_camera(tmp_path / "sim", "gopro_swap", clock=clock) as (gopro, url):
        take = CameraRecorder("gopro", url, tmp_path / "gopro")
        take.prepare()
        start_clip(take)
        away_ns = changed(gopro, take, "gopro_swap")
        clock.move(1.0)
        until(
            lambda: take.state.recorded_s and not take.state.problem,
            "a growing second clip without a problem",
        )
        assert take.state.battery_percent == 100
        stop_clip(take)
    [gap] = media(tmp_path / "gopro")["gaps"]
    assert gap["cause"] == "device_swap"
    shutters = media(tmp_path / "gopro")
    assert shutters["shutter_on"]["observed_host_ns"] <= gap["start_host_ns"] < away_ns
    assert away_ns < gap["end_host_ns"] <= shutters["shutter_off"]["before_host_ns"]
    names = [file["file"] for file in media(tmp_path / "gopro")["files"]]
    assert names == ["GX010001.MP4", "GX010002.MP4"]
    assert len(media(tmp_path / "gopro")["shutters_on_again"]) == 1
    assert "battery or card was changed" in take.state.problem


def test_after_a_card_change_one_clip_is_fetched_and_one_imported(tmp_path: Path) -> None:
    """Both cards use the same file name: neither file replaces the other."""
    recording = tmp_path / "data" / "take-1"
    clock = MovedClock(runs=True)
    with virtual_camera(tmp_path / "sim", "gopro_new_card", clock=clock) as (gopro, url):
        older = gopro.camera.card.next_path()
        older.write_bytes(b"of another recording")
        gopro.camera.card.add(CardFile(older.name, older, older.stat().st_size, 0))
        take = CameraRecorder("gopro", url, recording / "gopro")
        device = take.prepare()
        start_clip(take)
        changed(gopro, take, "gopro_new_card")
        stop_clip(take)
        truth = {file["sha256"] for file in gopro.camera.kitchen.truth.as_dict()["gopro"]}
    entry = media(recording / "gopro")
    assert [file["file"] for file in entry["files"]] == ["GX010001.MP4"]
    assert entry["state"] == "done"
    assert "1 of its 2 clips: not on the card" in take.state.problem
    taken_out = tmp_path / "sim" / "gopro-card-taken-out"
    (taken_out / "GX010001.MP4").unlink()
    (taken_out / "GX010002.MP4").rename(taken_out / "GX010001.MP4")
    manifest = {"schema": "recording/1", "recording": "take-1", "devices": {"gopro": device}, "files": {}}
    write_json(recording / "recording.json", manifest | {"state": "complete", "streams": {}})
    for _ in range(2):  # importing the same card again changes nothing
        order = ["gopro", "import", str(taken_out), "--recording", str(recording), "--yes", "--json"]
        done = CliRunner().invoke(main, order)
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["imported"][0]["files"] == ["GX010002.MP4"]
    entries = media(recording / "gopro")["files"]
    assert [(file["file"], file.get("card_file")) for file in entries] == [
        ("GX010001.MP4", None),
        ("GX010002.MP4", "GX010001.MP4"),
    ]
    assert {file["sha256"] for file in entries} == truth


def test_a_replaced_camera_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with virtual_camera(tmp_path / "sim", "gopro_new_card") as (gopro, url):
        take = CameraRecorder("gopro", url, tmp_path / "gopro")
        first = take.prepare()["serial"]
        start_clip(take)
        gopro.camera.begin_fault("gopro_new_card")
        monkeypatch.setattr(VirtualCamera, "serial", "C3501325999999")
        until(lambda: "not answer" in take.state.problem, "the camera's problem")
        gopro.camera.end_fault("gopro_new_card")
        until(lambda: take.state.gaps, "the other camera")
        stop_clip(take)
    entry = media(tmp_path / "gopro")
    assert (entry["serial"], entry["shutters_on_again"][0]["serial"]) == (first, "C3501325999999")
    assert take.state.problem.startswith("camera C3501325999999 took its place: ")
    assert entry["gaps"][0]["cause"] == "device_swap"


def test_an_empty_battery_leaves_the_session_alone(tmp_path: Path) -> None:
    with virtual_camera(tmp_path / "sim", "gopro_battery_dead") as (gopro, url):
        take = CameraRecorder("gopro", url, tmp_path / "gopro")
        take.prepare()
        start_clip(take)
        gopro.camera.begin_fault("gopro_battery_dead")
        stop_clip(take)
    assert take.state.state == "pending"
    assert media(tmp_path / "gopro")["state"] == "pending"


@pytest.mark.promise("A camera's film comes home, or the camera's trouble is named")
def test_two_cameras_at_once(tmp_path: Path) -> None:
    with (
        virtual_camera(tmp_path / "one", name="left") as (_, left),
        virtual_camera(tmp_path / "two", name="right", seed=4) as (_, right),
    ):
        takes = [
            CameraRecorder(name, url, tmp_path / name) for name, url in (("left", left), ("right", right))
        ]
        serials = {take.prepare()["serial"] for take in takes}
        assert len(serials) == 2
        for take in takes:
            take.start()
        until(lambda: all(take.state.state == "recording" for take in takes), "two open shutters")
        for take in takes:
            take.end()
        for take in takes:
            take.join(timeout=120)
    assert all(media(tmp_path / name)["state"] == "done" for name in ("left", "right"))


def test_only_verified_copies_free_a_card(tmp_path: Path) -> None:
    recording = tmp_path / "data" / "take-1"
    with virtual_camera(tmp_path / "sim") as (gopro, url):
        take = CameraRecorder("gopro", url, recording / "gopro")
        take.prepare()
        record_clip(take)
        arguments = ["gopro", "free", str(recording), "--copy", str(tmp_path / "nas")]
        alone = CliRunner().invoke(main, arguments)
        assert alone.exit_code == 1
        assert "1 verified copies, 2 are needed" in alone.stdout
        copy = tmp_path / "nas" / "take-1" / "gopro" / "GX010001.MP4"
        copy.parent.mkdir(parents=True)
        copy.write_bytes((recording / "gopro" / "GX010001.MP4").read_bytes()[:-1] + b"?")
        assert CliRunner().invoke(main, arguments).exit_code == 1
        assert len(gopro.camera.card.files()) == 1
        copy.write_bytes((recording / "gopro" / "GX010001.MP4").read_bytes())
        assert CliRunner().invoke(main, arguments).exit_code == 0
        assert gopro.camera.card.files() == []


def test_copies_of_the_mover_count_while_they_exist(tmp_path: Path) -> None:
    """`copies.jsonl` names the store; the copy is read again, and only this store counts."""
    recording, store = tmp_path / "data" / "take-1", tmp_path / "store"
    store.mkdir()
    with virtual_camera(tmp_path / "sim") as (gopro, url):
        take = CameraRecorder("gopro", url, recording / "gopro")
        take.prepare()
        record_clip(take)
        write_json(
            recording / "recording.json",
            {"schema": "recording/1", "recording": "take-1", "state": "complete", "files": {}}
            | {"streams": {}, "devices": {}},
        )
        [state] = run_mover([recording], [store], rule=None)
        assert state.finished, state.problem
        free = ["gopro", "free", str(recording), "--json"]

        def refused(message: str) -> None:
            answer = CliRunner().invoke(main, free)
            assert answer.exit_code == 1
            [row] = json.loads(answer.stdout)["files"]
            assert message in row["why"]
            assert len(gopro.camera.card.files()) == 1

        store.rename(tmp_path / "unplugged")
        refused("is the store mounted?")
        store.mkdir()
        refused("is the store mounted?")  # an empty mount point counts as another store
        store.rmdir()
        (tmp_path / "unplugged").rename(store)
        copy = store / "take-1" / "gopro" / "GX010001.MP4"
        kept = copy.read_bytes()
        copy.write_bytes(kept[:-1] + b"?")
        refused("holds other bytes")
        copy.unlink()
        os.link(recording / "gopro" / "GX010001.MP4", copy)  # a hard link is not a second copy
        refused("1 verified copies, 2 are needed")
        copy.unlink()
        copy.write_bytes(kept)
        (recording / "gopro" / "GX010001.MP4").rename(tmp_path / "gone.MP4")
        refused("1 verified copies, 2 are needed")
        (tmp_path / "gone.MP4").rename(recording / "gopro" / "GX010001.MP4")
        answer = CliRunner().invoke(main, free)
        assert answer.exit_code == 0, answer.stdout
        assert len(json.loads(answer.stdout)["files"][0]["copies"]) == 2
        assert gopro.camera.card.files() == []


def test_a_recording_from_elsewhere_erases_no_card(tmp_path: Path) -> None:
    recording, gift = tmp_path / "data" / "take-1", tmp_path / "received" / "take-1"
    with virtual_camera(tmp_path / "sim") as (gopro, url):
        take = CameraRecorder("gopro", url, recording / "gopro")
        take.prepare()
        record_clip(take)
        shutil.copytree(recording, gift)
        arguments = ["gopro", "free", str(gift), "--copies", "1", "--gopro", f"gopro={url}"]
        refused = CliRunner().invoke(main, arguments)
        assert refused.exit_code == 1
        assert "this installation did not take it in" in refused.stdout
        assert len(gopro.camera.card.files()) == 1


def test_damaged_media_files_and_wrong_addresses_are_reported(tmp_path: Path) -> None:
    recording = tmp_path / "take-1"
    (recording / "gopro").mkdir(parents=True)
    (recording / "gopro" / "media.json").write_text("{")
    done = CliRunner().invoke(main, ["gopro", "free", str(recording), "--json"])
    assert done.exit_code == 1
    assert "media.json: cannot be read" in json.loads(done.stdout)["problems"][0]
    for command in ("free", "fetch"):
        wrong = CliRunner().invoke(main, ["gopro", command, str(recording), "--gopro", "192.168.1.4"])
        assert wrong.exit_code == 2
        assert "is not NAME=URL" in wrong.stderr


def test_facts_and_problems_of_a_camera_state() -> None:
    def answer(second: int, **status: int) -> Answer:
        values = {"8": 0, "10": 1, "13": second, "33": 0, "35": 5000, "70": 80} | status
        return Answer(values, {}, second * 10**9)

    shown = CameraHealth()
    watch = CameraWatch(shown)
    watch.answered(answer(1))
    assert (shown.problem, shown.battery_percent, shown.minutes_left) == ("", 80, 83.3)
    watch.answered(answer(2, **{"54": 4_000_000}))
    assert shown.facts == "2 s, battery 80 %, 83 min left, 4.1 GB free"
    watch.answered(answer(2, **{"70": 7, "35": 60}))
    assert shown.problem == "battery at 7 %, card full in 60 s"
    watch.answered(Answer(answer(3).status, {}, 20 * 10**9))
    watch.answered(Answer(answer(3).status, {}, 30 * 10**9))
    assert "does not grow" in shown.problem


def test_a_camera_lost_between_two_status_queries_is_restarted() -> None:
    """The query waits for its answer, so that the loss itself is not noticed."""

    def answer(at_s: float, *, is_recording: bool) -> Answer:
        values = {"8": 0, "10": int(is_recording), "13": 3, "33": 0, "35": 5000, "70": 80}
        return Answer(values, {}, round(at_s * 1e9))

    watch = CameraWatch(CameraHealth())
    for at_s in (1.0, 2.0, 3.0):
        watch.answered(answer(at_s, is_recording=True))
    watch.answered(answer(5.1, is_recording=False))
    assert watch.is_swapped
    watch.resumed(6 * 10**9)
    assert watch.health.gaps == [
        {"start_host_ns": 3 * 10**9, "end_host_ns": 6 * 10**9, "cause": "device_swap"}
    ]
    watch.answered(answer(6.5, is_recording=True))
    # Its shutter button was pressed, which is not a change of battery or card.
    watch.answered(answer(7.5, is_recording=False))
    assert not watch.is_swapped


def test_fetching_does_not_touch_a_camera_used_by_a_running_recorder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A running recording is more important than its own files or those of an older recording."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    data = tmp_path / "data"
    with virtual_camera(tmp_path / "sim") as (_, url), GoProHttp(url) as camera:
        for name in ("take-1", "take-2"):
            (data / name / "gopro").mkdir(parents=True)
            write_json(data / name / "recording.json", {"schema": "recording/1", "recording": name})
            about = {"state": "pending", "address": url, "serial": camera.info().serial, "files": []}
            write_json(data / name / "gopro" / "media.json", about)
        camera.shutter(True)
        fetch = ["gopro", "fetch", str(data), "--json"]
        takes = json.loads(CliRunner().invoke(main, fetch).stdout)["takes"]
        assert all("does not know the address" in row["problem"] for row in takes), (
            "addresses in media.json are not trusted"
        )
        fetch += ["--gopro", f"gopro={url}"]
        runtime = runtime_folder(data / "take-2")
        runtime.mkdir()
        with hold_lock(runtime / RUNNING):
            refused = CliRunner().invoke(main, fetch)
            assert camera.state().encoding
        assert refused.exit_code == 1
        assert "take-2/gopro: being recorded now" in refused.stderr
        [older] = json.loads(refused.stdout)["takes"]
        assert (older["recording"], older["files"]) == ("take-1", [])
        assert "it records take-2 now" in older["problem"]
        done = CliRunner().invoke(
            main, fetch
        )  # that recorder has ended: only this command can stop the camera
        assert done.exit_code == 0, done.output
        assert not camera.state().encoding
    assert media(data / "take-2" / "gopro")["state"] == "done"


def test_a_card_that_lists_no_file_is_checked_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = tmp_path / "data" / "take-1"
    with virtual_camera(tmp_path / "sim") as (gopro, url):
        take = CameraRecorder("gopro", url, recording / "gopro")
        device = take.prepare()
        with monkeypatch.context() as late:
            late.setattr(gopro.camera.card, "files", list)
            record_clip(take)
        assert "no file of this clip" in take.state.problem
        assert media(recording / "gopro")["state"] == "pending"
        manifest = {"schema": "recording/1", "recording": "take-1", "devices": {"gopro": device}, "files": {}}
        manifest |= {"state": "complete", "streams": {}}
        write_json(recording / "recording.json", manifest)
        done = CliRunner().invoke(main, ["gopro", "fetch", str(recording), "--json"])
        assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["takes"][0]["files"] == ["GX010001.MP4"]


def test_a_file_that_the_camera_repaired_is_fetched_as_it_is_now(tmp_path: Path) -> None:
    recording = tmp_path / "take-1"
    with virtual_camera(tmp_path / "sim") as (_, url), GoProHttp(url) as camera:
        camera.shutter(True)
        camera.shutter(False)
        camera.wait_idle()
        [file] = camera.media()
        entries = [{"file": file.name, "folder": file.folder, "bytes": file.bytes - 1000}]
        (recording / "gopro").mkdir(parents=True)
        fetch_files(camera, recording / "gopro", [file], entries)
    assert entries[0]["bytes"] == entries[0]["stored_bytes"] == file.bytes
