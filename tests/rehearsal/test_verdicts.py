"""The judge of a rehearsal: right causes and verdicts pass, planted wrong ones are found."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rehearsal import account as accounts
from rehearsal.account import Account, settle
from rehearsal.scenarios import REFUSED
from rehearsal.verdicts import coverage, longest_step_s, session_end_ns, wrong_verdict

from kitchensync.storage.chunks.layout import INDEX

S = 10_000_000
"Ticks a second."


@pytest.mark.parametrize(
    ("status", "lost", "covered", "untouched", "is_right"),
    [
        ("PASS", 0, 0.95, False, True),
        ("PASS", 0, 0.949, False, False),
        ("PASS", 1, 1.0, False, False),
        ("WARN", 1, 1.0, False, True),
        ("WARN", 0, 1.0, False, True),
        ("WARN", 0, 1.0, True, False),
        ("FAIL", 0, 1.0, False, False),
        ("FAIL", 7, 0.9, False, False),
        ("FAIL", 7, 0.3, False, True),
        ("WARN", 7, 0.3, False, True),
        ("no answer", 0, 1.0, False, False),
    ],
)
def test_a_verdict_is_held_against_the_truth(status, lost, covered, untouched, is_right):
    assert bool(wrong_verdict(status, lost, covered, is_untouched=untouched)) is not is_right


@given(st.lists(st.integers(0, 60), min_size=1, max_size=40), st.integers(0, 40), st.integers(60, 120))
def test_coverage_is_every_tenth_of_a_second_that_lies_in_no_hole(stamps, start, stop):
    """Counted one by one: a tenth is covered where the stamps around it are no further apart than the step."""
    ticks = np.array(sorted(set(stamps)), "i8") * (S // 10)
    last = max(stamps)
    end = last if 0 <= stop - last <= 10 else stop
    moments = sorted({*stamps, end} if last < end else set(stamps))

    def is_covered(tenth: int) -> bool:
        left = max((m for m in moments if m <= tenth), default=start)
        right = min((m for m in moments if m > tenth), default=end)
        return right - left <= 5

    asked = range(start, end)
    expected = sum(map(is_covered, asked)) / len(asked) if asked else None
    found = coverage(ticks, start * S // 10, stop * S // 10, 0.5)
    if expected is not None:
        assert found == pytest.approx(expected, abs=1e-6)


def test_the_step_is_three_periods_or_half_a_second():
    assert longest_step_s(30.0, adaptive=False) == pytest.approx(0.1)
    assert longest_step_s(45.0, adaptive=True) == 0.5
    assert longest_step_s(1.0, adaptive=True) == 3.0


def test_a_session_ends_with_the_world_the_stop_or_the_recorder():
    assert session_end_ns([100, 110], {"host_ns": 120}, []) == 100
    assert session_end_ns([100, 110], {"host_ns": 80}, []) == 80
    killed = [{"kind": "kill_supervisor", "start_host_ns": 60}, {"kind": "kill_queue", "start_host_ns": 50}]
    assert session_end_ns([100, 110], {"host_ns": 80}, killed) == 60


class OneStream:
    """A scenario of one stream, a hundred packets at 30 Hz, with `missing` ones behind one gap."""

    def __init__(self, folder, monkeypatch, *, missing=range(40, 60), cause="restart", status="WARN"):
        ticks = [k * S // 30 for k in range(100)]
        kept = [k for k in range(100) if k not in missing]
        index = np.zeros(len(kept), INDEX)
        index["device_ticks"] = [ticks[k] for k in kept]
        index["host_ns"] = index["device_ticks"] * 100 + 5_000
        start, end = ticks[min(missing, default=1) - 1], ticks[max(missing, default=-2) + 1]
        gaps = [{"start_ticks": start, "end_ticks": end, "cause": cause}] if missing else []
        self.facts = facts = {
            "stored": len(kept),
            "duplicates": 0,
            "gaps": gaps,
            "sha256": "x",
            "ended": "ended_by_device",
        }
        answer = {"status": status, "reasons": ["some reason"], "streams": {"hololens/pv": facts}}
        self.folder, self.recording = folder, folder / "data" / "take"
        self.recording.mkdir(parents=True)
        truth = folder / "sim" / "truth" / "hololens"
        truth.mkdir(parents=True)
        (truth / "pv.jsonl").write_text("\n".join(json.dumps({"ticks": one}) for one in ticks))
        told = {"hololens/pv": {"packets": 100, "sha256": "x"}}
        whole = {"world0_host_ns": 0, "streams": told, "gopro": []}
        (folder / "sim" / "truth.json").write_text(json.dumps(whole))
        (folder / "record.json").write_text(json.dumps({"status": status}))
        self.fault = {"kind": "kill_producer", "start_host_ns": start * 100, "end_host_ns": end * 100}
        self.tell(self.fault)
        monkeypatch.setattr(accounts, "verify", lambda _: answer)
        monkeypatch.setattr(accounts, "open_recording", lambda _: _Opened(index))
        streams = {"hololens/pv": {"nominal_hz": 30.0}}
        monkeypatch.setattr(accounts, "read_manifest", lambda _: {"streams": streams})

    def tell(self, *faults):
        scenario = {
            "recording": "take",
            "kind": "kill_producer",
            "seconds": 3.3,
            "record_s": 23.0,
            "faults": list(faults),
        }
        (self.folder / "scenario.json").write_text(json.dumps(scenario))


class _Opened(dict):
    def __init__(self, index):
        super().__init__({"hololens/pv": type("Stream", (), {"index": index})})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


def test_a_gap_with_the_right_cause_and_verdict_is_fine(tmp_path, monkeypatch):
    OneStream(tmp_path, monkeypatch)
    account = settle(tmp_path)
    assert (account.named_losses, account.unexplained, account.wrong_causes) == (20, 0, 0), account.notes
    assert account.least_coverage == pytest.approx(1 - 21 / 99, abs=0.01)
    assert account.is_fine


def test_a_stream_that_was_sent_and_is_not_recorded_is_found(tmp_path, monkeypatch):
    OneStream(tmp_path, monkeypatch)
    truth = json.loads((tmp_path / "sim" / "truth.json").read_text())
    truth["streams"]["hololens/gyroscope"] = {"packets": 3, "sha256": "y"}
    (tmp_path / "sim" / "truth.json").write_text(json.dumps(truth))
    assert (settle(tmp_path).unexplained, settle(tmp_path).is_fine) == (1, False)


@pytest.mark.parametrize("cause", ["network", "queue_loss", "suspend", "device_rate"])
def test_a_planted_wrong_cause_is_found(tmp_path, monkeypatch, cause):
    OneStream(tmp_path, monkeypatch, cause=cause)
    account = settle(tmp_path)
    assert account.wrong_causes == 1
    assert f"named {cause}, and done was kill_producer" in account.notes
    assert not account.is_fine


def test_a_cause_must_fit_a_fault_that_the_gap_meets(tmp_path, monkeypatch):
    scenario = OneStream(tmp_path, monkeypatch, cause="network")
    long_ago = {"kind": "cut_socket", "start_host_ns": -5 * 10**9, "end_host_ns": -4 * 10**9}
    scenario.tell(scenario.fault, long_ago)
    assert settle(tmp_path).wrong_causes == 1
    scenario.tell(scenario.fault, {**scenario.fault, "kind": "cut_socket"})
    assert settle(tmp_path).wrong_causes == 0


@pytest.mark.parametrize(
    ("status", "missing", "wrong"),
    [
        ("PASS", range(40, 60), 2),
        ("FAIL", range(40, 60), 2),
        ("FAIL", range(30, 95), 0),
        ("PASS", range(0), 0),
    ],
)
def test_a_planted_wrong_verdict_is_found_in_verify_and_in_record(
    tmp_path, monkeypatch, status, missing, wrong
):
    OneStream(tmp_path, monkeypatch, status=status, missing=missing)
    account = settle(tmp_path)
    assert account.wrong_causes == wrong, account.notes
    assert account.verdict == status


def test_a_recorder_without_an_answer_is_wrong(tmp_path, monkeypatch):
    OneStream(tmp_path, monkeypatch)
    (tmp_path / "record.json").write_text("")
    account = settle(tmp_path)
    assert (account.wrong_causes, account.notes) == (1, "`record` says no answer")


RIGHT = {
    "exit": 1,
    "stdout": '{"status": "refused"}',
    "stderr": "kitchensync: no; do\n",
    "left": [],
}


@pytest.mark.parametrize(
    ("change", "fine"),
    [
        ({}, True),
        ({"exit": 0}, False),
        ({"stderr": "kitchensync: no\nTraceback"}, False),
        ({"left": ["data/take"]}, False),
        ({"left": ["the key b'take'"]}, False),
        ({"stdout": ""}, False),
    ],
)
def test_a_refusal_is_one_line_and_leaves_nothing(tmp_path, change, fine):
    (tmp_path / "scenario.json").write_text(json.dumps({"recording": "take", "faults": []}))
    (tmp_path / "sim").mkdir()
    (tmp_path / "sim" / "truth.json").write_text("{}")
    (tmp_path / REFUSED).write_text(json.dumps(RIGHT | change))
    account = settle(tmp_path)
    assert account.is_fine is fine
    assert account.verdict == "refused"


@pytest.mark.parametrize(
    ("kind", "target", "ended", "wrong"),
    [
        ("headset_dies", "hololens", "ended_by_device", 1),
        ("headset_dies", "hololens", "lost", 0),
        ("dead_port", "hololens/pv", "ended_by_device", 1),
        ("dead_port", "hololens/gyroscope", "ended_by_device", 0),
    ],
)
def test_a_death_taken_for_an_end_is_found(tmp_path, monkeypatch, kind, target, ended, wrong):
    scenario = OneStream(tmp_path, monkeypatch, cause="network")
    scenario.tell({**scenario.fault, "kind": kind, "target": target})
    scenario.facts["ended"] = ended
    assert settle(tmp_path).wrong_causes == wrong


def test_wrong_causes_alone_make_a_rehearsal_fail():
    assert not Account("x", wrong_causes=1).is_fine


@pytest.mark.parametrize("told", [[], [{"file": "GX010001.MP4", "sha256": "y"}]])
@pytest.mark.parametrize(("status", "is_fine"), [("FAIL", True), ("PASS", False)])
def test_a_film_that_stays_on_a_dead_camera_is_a_loss(tmp_path, monkeypatch, told, status, is_fine):
    scenario = OneStream(tmp_path, monkeypatch, missing=range(0), status=status)
    scenario.tell({**scenario.fault, "kind": "camera_dies"})
    truth = json.loads((tmp_path / "sim" / "truth.json").read_text())
    truth["gopro"] = told
    (tmp_path / "sim" / "truth.json").write_text(json.dumps(truth))
    account = settle(tmp_path)
    assert account.is_fine is is_fine, account.notes
