"""The whole way of a packet, from the virtual kitchen's sockets to sealed files, judged by its truth file."""

from __future__ import annotations

import grp
import json
import os
import signal
import subprocess
from pathlib import Path

import h5py
import pytest
from processes import (
    COMMAND,
    LIMIT_S,
    children,
    kitchensync,
    recording_all,
    running,
    wait_for_more,
    wait_until_all_stream,
    wait_until_gone,
)

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]
LIGHT = "gyroscope,accelerometer,magnetometer,spatial_input,microphone"
"""Streams that the virtual headset sends in time on a busy computer too, without repeating them."""


def equal_to_truth(streams: dict, truth: dict) -> None:
    for name, sent in truth["streams"].items():
        stored = streams[name]
        assert stored["stored"] == stored["received"] == sent["packets"], name
        assert stored["sha256"] == sent["sha256"], name
        assert (stored["duplicates"], stored["missing"]) == (0, []), name
    for file in truth["gopro"]:
        assert streams[f"gopro/{file['file']}"]["sha256"] == file["sha256"]
        assert streams[f"gopro/{file['file']}"]["stored"] == file["bytes"]


@pytest.mark.promise("A headset and a camera are recorded whole and aligned with the truth")
def test_a_take_that_the_devices_end_is_equal_to_the_truth_and_aligned_with_it(kitchen, runtime, tmp_path):
    place = kitchen(seconds=14)
    data = tmp_path / "data"
    words = ["--hololens", place.host, "--streams", LIGHT, "--gopro", place.camera, "--json"]
    done = kitchensync("record", "take", "--data", data, *words)
    answer = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert answer["schema"] == "record/1"
    assert answer["ended"] == "ended_by_device"
    truth = place.truth()
    truth["streams"] = {name: truth["streams"][name] for name in answer["streams"] if "gopro" not in name}
    assert len(truth["streams"]) == 5
    equal_to_truth(answer["streams"], truth)
    assert len(truth["gopro"]) == 1
    assert answer["status"] in ("PASS", "WARN"), answer["reasons"]
    again = json.loads(kitchensync("verify", data / "take", "--json").stdout)
    assert again["streams"] == answer["streams"]
    assert [path for path in data.rglob("*") if path.suffix == ".part"] == []
    assert not (data / ".kitchensync").exists()
    for path in set(data.rglob("*.h5")) - set(data.rglob("calibration/*.h5")):
        with h5py.File(path) as file:
            assert "index" not in file or file.attrs["count"] == len(file["index"])
    synced = kitchensync("sync", data / "take", "--json")
    assert synced.returncode == 0, synced.stderr
    (pair,) = json.loads(synced.stdout)["recordings"][0]["pairs"]
    clock = truth["gopro"][0]["clock_map"]
    for t, ticks in pair["samples"]:
        true = clock["epoch_ticks"] + 1e7 * (t + clock["tau0_s"] + clock["drift_ppm"] * 1e-6 * t)
        assert abs(ticks - true) < 20_000, f"{(ticks - true) / 1e4:.2f} ms off at {t:.2f} s"
    assert (data / "take" / "sync" / "index.parquet").exists()
    described_as_sent(data, truth, place.out / "truth", pair["status"])
    needs_nobody_s_consent(data, tmp_path / "cloud")
    only_its_owner_reads(data, tmp_path / "store")


def needs_nobody_s_consent(data: Path, cloud: Path) -> None:
    """What the virtual kitchen's devices made says so and may go anywhere, until somebody withdraws."""
    manifest = json.loads((data / "take" / "recording.json").read_text())
    assert (manifest["virtual"], manifest["consent"]) == (True, "none")
    sent = kitchensync("upload", data / "take", f"file://{cloud}")
    assert sent.returncode == 0, sent.stderr
    assert (cloud / "take" / "recording.json").read_bytes() == (data / "take" / "recording.json").read_bytes()


def only_its_owner_reads(data: Path, store: Path) -> None:
    """Nobody else may read what was recorded, derived, copied or packed, whatever the umask is that we run under."""
    store.mkdir()
    kitchensync("report", data)
    moved = kitchensync("move", data, "--to", store, "--keep")
    assert moved.returncode == 0, moved.stderr
    packed = kitchensync("archive", data)
    assert packed.returncode == 0, packed.stderr
    kinds = {path.suffix for path in data.rglob("*") if path.is_file()}
    assert {".h5", ".json", ".jsonl", ".html", ".MP4", ".parquet"} <= kinds
    assert len([path for path in store.rglob("*") if path.is_file()]) > 20
    readable = [path for path in (*data.rglob("*"), *store.rglob("*")) if path.stat().st_mode & 0o077]
    assert readable == []


def described_as_sent(data: Path, truth: dict, folder: Path, status: str) -> None:
    """`info` and `list` say of a recording what the kitchen sent: packets, rates, seconds, films."""
    said = json.loads(kitchensync("info", data / "take", "--json").stdout)
    files = {name: folder / f"{name}.jsonl" for name in truth["streams"]}
    sent = {
        name: [json.loads(line) for line in path.read_text().splitlines()] for name, path in files.items()
    }
    zero = min(lines[0]["ticks"] for lines in sent.values())
    for name, lines in sent.items():
        stream, first, last = said["streams"][name], lines[0]["ticks"], lines[-1]["ticks"]
        assert stream["packets"] == len(lines), name
        assert stream["rate_hz"] == pytest.approx((len(lines) - 1) / (last - first) * 1e7, rel=1e-3), name
        seconds = pytest.approx([(first - zero) / 1e7, (last - zero) / 1e7], abs=1e-3)
        assert [stream["from_s"], stream["to_s"]] == seconds, name
    (film,), (alignment,) = said["cameras"]["gopro"]["files"], said["alignments"]
    assert (film["name"], film["bytes"]) == tuple(truth["gopro"][0][key] for key in ("file", "bytes"))
    assert alignment["status"] == status
    (row,) = json.loads(kitchensync("list", data, "--json").stdout)["recordings"]
    assert (row["recording"], row["life"], row["alignment"]) == ("take", "complete", status)
    du = subprocess.run(["du", "-ab", data / "take"], capture_output=True, text=True, check=True).stdout
    sizes = {Path(path): int(size) for size, path in (line.split("\t") for line in du.splitlines())}
    assert row["bytes"] == sum(size for path, size in sizes.items() if path.is_file())


@pytest.mark.promise("What we stop is a prefix of what was sent, by Ctrl-C and from another terminal")
def test_a_take_that_we_stop_first_is_a_prefix_of_the_truth(kitchen, runtime, tmp_path):
    place = kitchen("--rings", seconds=20)
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    group = another_group()
    (data / "lab.toml").write_text(f'group = "{group.gr_name}"\n')
    done = kitchensync("record", "take", "--data", data, "--hololens", place.host, "--seconds", "3", "--json")
    answer = json.loads(done.stdout)
    assert answer["ended"] == "time", done.stderr  # its verdict is another matter: a busy kitchen sends late
    streams = answer["streams"]
    truth = place.truth()
    for name, sent in truth["streams"].items():
        assert 0 < streams[name]["stored"] <= sent["packets"], name
        assert streams[name]["missing"] == [], name
        lines = (place.out / "truth" / f"{name}.jsonl").read_text().splitlines()
        with_size = [json.loads(line)["size"] for line in lines[: streams[name]["stored"]]]
        assert sum(with_size) == streams[name]["bytes"], name
    the_group_reads_and_nobody_else(data, group)


def another_group() -> grp.struct_group:
    """A group that we may give files to, another one than ours where there is one."""
    if os.geteuid() == 0:
        return next(group for group in grp.getgrall() if group.gr_gid != os.getegid())
    return grp.getgrgid(next((gid for gid in os.getgroups() if gid != os.getegid()), os.getegid()))


def the_group_reads_and_nobody_else(data: Path, group: grp.struct_group) -> None:
    """What is recorded and derived belongs to the group of lab.toml, which may read it."""
    assert kitchensync("report", data / "take").returncode == 0
    shared = [data / "take", *(data / "take").rglob("*")]
    assert len(shared) > 20
    assert {path.stat().st_gid for path in shared} == {group.gr_gid}
    assert [path for path in shared if path.stat().st_mode & 0o007] == []
    assert [path for path in shared if not path.stat().st_mode & 0o040] == []


@pytest.mark.parametrize(
    "victim",
    [
        pytest.param(
            "kitchensync drainer",
            marks=pytest.mark.promise("Nothing that the queue had is lost, whatever process is killed"),
        ),
        "kitchensync producer",
        "valkey-server",
    ],
)
def test_a_killed_process_loses_nothing_that_the_queue_had(kitchen, runtime, tmp_path, victim):
    place = kitchen("--rings", seconds=8)
    data = tmp_path / "data"
    with recording_all(place.host, runtime, data) as recorder:
        lines = children(recorder.pid)
        pids = [pid for pid, line in lines.items() if victim in line]
        assert pids
        if victim == "kitchensync drainer":  # it is started anew where nobody is left to fork it
            for server in [pid for pid, line in lines.items() if "fork server" in line]:
                os.kill(server, signal.SIGKILL)
        os.kill(pids[0], signal.SIGKILL)
        output, errors = recorder.communicate(timeout=LIMIT_S)
    assert "Traceback" not in errors
    answer = json.loads(output)  # its verdict is up to how soon a busy computer starts the process again
    assert [restart["exit"] for restart in answer["restarts"]] == [-9]
    if victim == "kitchensync drainer":
        equal_to_truth(answer["streams"], place.truth())
    for name, facts in answer["streams"].items():
        assert facts["duplicates"] == 0, name
        assert facts["missing"] == [], name
        causes = {gap["cause"] for gap in facts["gaps"]}
        assert causes <= {"restart", "reconnect", "network", "queue_loss", "device_rate"}, name


def test_ctrl_c_ends_cleanly_and_leaves_no_process(kitchen, runtime, tmp_path):
    place = kitchen("--rings", seconds=0)
    with recording_all(place.host, runtime, tmp_path / "data") as recorder:
        pids = list(children(recorder.pid))
        assert len(pids) >= 3
        recorder.send_signal(signal.SIGINT)
        output, errors = recorder.communicate(timeout=LIMIT_S)
    assert "Traceback" not in errors
    answer = json.loads(output)
    assert answer["ended"] == "signal"  # its verdict after half a second is up to a busy kitchen
    assert recorder.returncode == (answer["status"] == "FAIL")
    wait_until_gone(pids)


@pytest.mark.promise("Nothing that the queue had is lost, whatever process is killed")
def test_a_killed_recorder_leaves_no_process_and_its_recording_is_recovered(kitchen, runtime, tmp_path):
    place = kitchen("--rings", seconds=0)
    data = tmp_path / "data"
    command = [COMMAND, "record", "take", "--data", str(data), "--hololens", place.host]
    with running(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as recorder:
        state = wait_until_all_stream(recorder, runtime)
        wait_for_more(runtime, 2, "hololens/gyroscope", since=state)
        pids = list(children(recorder.pid))
        recorder.kill()
        recorder.wait()
        done = kitchensync("verify", data / "take", "--json")
        assert done.returncode == 1
        assert "never closed" in json.loads(done.stdout)["reasons"][0]
        recovered = kitchensync("recover", "--data", data)
        assert recovered.returncode == 0, recovered.stderr
        assert "take is recovered" in recovered.stdout
    wait_until_gone(pids)
    assert not (data / ".kitchensync").exists()
    checked = json.loads(kitchensync("verify", data / "take", "--json").stdout)
    # Never PASS; how much of two seconds a busy kitchen sends decides which of the two.
    assert checked["status"] in ("WARN", "FAIL"), checked["reasons"]
    assert checked["reasons"][0].startswith("its recorder was killed"), checked["reasons"]
    place.truth()
    for name, facts in checked["streams"].items():
        lines = (place.out / "truth" / f"{name}.jsonl").read_text().splitlines()
        sizes = [json.loads(line)["size"] for line in lines[: facts["stored"]]]
        assert facts["stored"] == facts["received"] > 0, name
        assert (sum(sizes), facts["missing"], facts["duplicates"]) == (facts["bytes"], [], 0), name
    assert "nothing to recover" in kitchensync("recover", "--data", data).stdout


def test_a_recording_over_a_server_of_yours(kitchen, runtime, tmp_path):
    from kitchensync.capture.queue.queue_connection import connect
    from kitchensync.capture.queue.server import QueueServer

    place = kitchen("--rings", seconds=4)
    (tmp_path / "q").mkdir()
    server = QueueServer(tmp_path / "q", runtime / "own")
    server.start()
    try:
        take = (
            "record",
            "take",
            "--data",
            tmp_path / "data",
            "--hololens",
            place.host,
            "--redis",
            server.url,
        )
        done = kitchensync(*take, "--json")
        assert done.returncode == 0, done.stderr
        equal_to_truth(json.loads(done.stdout)["streams"], place.truth())
        with connect(server.url) as client:
            assert client.dbsize() == 0
    finally:
        server.stop()
