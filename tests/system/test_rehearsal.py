"""A short rehearsal, its table worked out again by a checker that knows none of our code; drainers that lie."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pytest
from processes import COMMAND, kitchensync
from rehearsal.play import play
from rehearsal.run import accounted
from rehearsal.scenarios import draw
from second_checker import check, share_covered, verified, wrong_status

pytestmark = [pytest.mark.system, pytest.mark.timeout(580)]


@pytest.mark.slow
def test_five_scenarios_and_the_second_opinion(tmp_path):
    done = kitchensync(
        "rehearse", "--scenarios", 5, "--seed", 1, "--keep", tmp_path / "kept", "--json", limit_s=560
    )
    answer = json.loads(done.stdout)
    assert (answer["schema"], answer["scenarios"]) == ("rehearse/1", 5)
    kinds = ("unexplained", "duplicates", "unreadable_files", "wrong_causes")
    assert [answer[kind] for kind in kinds] == [0, 0, 0, 0], answer["rows"]
    assert done.returncode == 0
    rows = {row["name"]: row for row in answer["rows"]}
    folders = sorted((tmp_path / "kept").iterdir())
    assert [folder.name for folder in folders] == sorted(rows)
    for folder in folders:
        sent, stored, named, wrong = check(folder, verified(folder))
        assert wrong == [], folder.name
        row = rows[folder.name]
        assert (row["produced"], row["stored"], row["named_losses"]) == (sent, stored, named), folder.name
    again = kitchensync("rehearse", "--scenarios", 5, "--seed", 1, "--keep", tmp_path / "kept", "--json")
    assert json.loads(again.stdout) == answer, "what was played is not played again"
    other = kitchensync("rehearse", "--scenarios", 5, "--seed", 2, "--keep", tmp_path / "kept")
    assert other.returncode == 1
    assert "another seed" in other.stderr


DRAINERS_THAT_LIE = {
    "drops a packet": """
    import kitchensync.storage.chunks.chunk_writer as chunk
    right = chunk.seal
    def wrong(folder, number, packets, *rest, **more):
        return right(folder, number, [packets[0], *packets[2:]], *rest, **more)
    chunk.seal = wrong
""",
    "writes a block twice": """
    import kitchensync.storage.chunks.chunk_writer as chunk
    right = chunk.seal
    def wrong(folder, number, packets, *rest, **more):
        return right(folder, number, [*packets, *packets], *rest, **more)
    chunk.seal = wrong
""",
    "acknowledges before it has sealed": """
    from kitchensync.capture.queue.queue_reader import QueueReader
    right = QueueReader.fresh
    def wrong(self, **more):
        got = right(self, **more)
        for stream, packets in got.items():
            self.acknowledge(stream, packets, None)
        return got
    QueueReader.fresh = wrong
""",
}


@pytest.mark.parametrize(
    "lie",
    [
        pytest.param(lie, marks=() if lie == "drops a packet" else pytest.mark.slow)
        for lie in DRAINERS_THAT_LIE
    ],
)
def test_a_drainer_that_lies_is_caught_by_both_checkers(tmp_path, monkeypatch, lie):
    body = (
        "import sys\nif {'record', 'kitchensync.capture.worker'} & set(sys.orig_argv):"
        + DRAINERS_THAT_LIE[lie]
    )
    (tmp_path / "sitecustomize.py").write_text(body)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    scenario = next(one for one in draw(12, 3, can_mount=False) if one.kind.name == "kill_drainer")
    folder = tmp_path / "kept" / scenario.name
    account = accounted(folder, partial(play, scenario))
    assert account.unexplained or account.duplicates
    assert check(folder, verified(folder))[3] != []


@pytest.fixture
def short_folder():
    """A folder whose name leaves room for the name of a socket."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="kr") as folder:
        yield Path(folder)


def test_an_interrupted_rehearsal_leaves_no_process_and_no_file(short_folder, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(short_folder))
    process = subprocess.Popen(
        [COMMAND, "rehearse", "--scenarios", "12"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        end_s = time.monotonic() + 60
        while not _with_folder(short_folder, "kitchensync producer") and time.monotonic() < end_s:
            time.sleep(0.1)
        assert _with_folder(short_folder, "kitchensync producer")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 1
    finally:
        process.kill()
        process.communicate()
    end_s = time.monotonic() + 20
    while _with_folder(short_folder, "") and time.monotonic() < end_s:
        time.sleep(0.1)
    assert _with_folder(short_folder, "") == []
    assert [path for path in short_folder.iterdir() if path.name.startswith("kitchensync-rehearse")] == []


def _with_folder(folder: Path, word: str) -> list[str]:
    """Return command lines of running processes that name a folder and a word."""
    found = []
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = line.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in text and word in text and int(line.parent.name) != os.getpid():
            found.append(text)
    return found


def one_stream(folder: Path, seqs: list[int]) -> dict:
    """Write a scenario of one stream by hand: five packets sent, those of `seqs` stored."""
    stream = folder / "data" / "take" / "hololens" / "gyroscope"
    stream.mkdir(parents=True)
    truth = folder / "sim" / "truth" / "hololens"
    truth.mkdir(parents=True)
    lines = [json.dumps({"k": k, "ticks": k * 10}) for k in range(5)]
    (truth / "gyroscope.jsonl").write_text("\n".join(lines))
    (folder / "scenario.json").write_text(json.dumps({"recording": "take", "faults": []}))
    rows = [(number, seq * 10, seq * 1000) for number, seq in enumerate(seqs)]
    with h5py.File(stream / "000001.h5", "w") as file:
        file["index"] = np.array(rows, [("seq", "<u8"), ("device_ticks", "<i8"), ("host_ns", "<i8")])
    return {"streams": {"hololens/gyroscope": {"gaps": []}}}


def test_the_second_opinion_wants_a_gap_a_fitting_cause_and_a_short_one(tmp_path):
    """The checker itself must be able to fail."""
    ledger = one_stream(tmp_path, [0, 1, 2, 4])
    assert check(tmp_path, ledger)[3] == ["hololens/gyroscope: tick 30 has no explanation"]
    gap = {"start_ticks": 20, "end_ticks": 40, "cause": "restart"}
    ledger["streams"]["hololens/gyroscope"]["gaps"] = [gap]
    assert len(check(tmp_path, ledger)[3]) == 4, "no fault, so no cause, no gap, no length, nobody who did it"
    fault = {"kind": "kill_producer", "target": "producer", "start_host_ns": 2500, "end_host_ns": 2500}
    scenario = {"recording": "take", "faults": [fault]}
    (tmp_path / "scenario.json").write_text(json.dumps(scenario))
    assert check(tmp_path, ledger) == (5, 4, 1, [])
    fault["kind"] = "cut_socket"
    (tmp_path / "scenario.json").write_text(json.dumps(scenario))
    wrong = check(tmp_path, ledger)[3]
    assert wrong[0] == "hololens/gyroscope: tick 30 has no explanation"
    assert "nobody did what" in wrong[1]
    fault["kind"] = "kill_producer"
    (tmp_path / "scenario.json").write_text(json.dumps(scenario))
    gap["end_ticks"] = 300_000_000
    assert "lasts longer" in check(tmp_path, ledger)[3][-1]


@pytest.mark.parametrize(
    ("status", "lost", "covered", "faults", "is_wrong"),
    [
        ("PASS", 1, 1.0, [{}], True),
        ("PASS", 0, 0.8, [{}], True),
        ("PASS", 0, 1.0, [{}], False),
        ("FAIL", 3, 0.9, [{}], True),
        ("FAIL", 3, 0.3, [{}], False),
        ("WARN", 0, 1.0, [], True),
        ("WARN", 3, 0.9, [{}], False),
    ],
)
def test_the_second_opinion_holds_verdicts_against_the_truth(status, lost, covered, faults, is_wrong):
    assert wrong_status(status, lost, covered, faults) is is_wrong


def test_the_second_opinion_adds_up_what_is_covered():
    second = 10_000_000
    ticks = [*range(0, 4 * second, second // 10), *range(6 * second, 8 * second, second // 10)]
    assert share_covered(ticks, 0, 8 * second) == pytest.approx(1 - 2.1 / 7.9, abs=0.01)
    assert share_covered(ticks, 0, 20 * second) == pytest.approx((4 + 2) / 20, abs=0.02)
