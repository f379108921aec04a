"""What an operator tells a running recording by command: it is kept, refused with words, and over when it says so."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from processes import (
    LIMIT_S,
    kitchensync,
    one_line,
    record_command,
    recording_all,
    running,
    wait_until_all_stream,
)

from kitchensync.storage.events import events_of
from kitchensync.storage.manifest import read_manifest
from kitchensync.storage.privacy import pauses_of

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

STREAMS = "gyroscope,accelerometer"


def said(*arguments: Any) -> dict[str, Any]:
    done = kitchensync(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.promise("What we stop is a prefix of what was sent, by Ctrl-C and from another terminal")
def test_marks_and_pauses_are_kept_and_a_stop_returns_when_the_ledger_is_closed(kitchen, runtime, tmp_path):
    place, data = kitchen("--rings", seconds=0), tmp_path / "data"
    with recording_all(place.host, runtime, data) as recorder:
        assert said("mark", "take", "the pan burns")["kind"] == "mark"
        assert said("mark", "take", "it was put out")["kind"] == "mark"
        assert said("pause", "take")["kind"] == "pause"
        ((began_ns, _),) = pauses_of(data / "take")
        assert said("resume")["kind"] == "resume"
        assert said("pause")["kind"] == "pause"
        assert said("resume", "take")["kind"] == "resume"
        second = kitchensync("record", "other", "--data", data, "--hololens", place.host)
        assert "hololens belongs to recording take; stop that one" in one_line(second)
        assert not (data / "other").exists()
        assert "other is not running" in one_line(kitchensync("stop", "other"))
        for unnamed in (kitchensync("stop"), kitchensync("stop", "--abort", "smoke")):
            assert unnamed.returncode == 2
            assert f"Running: take ({data / 'take'}, for 0 min)" in one_line(unnamed)
        elsewhere = ("--data", tmp_path)
        assert "nothing is being recorded" in one_line(kitchensync("stop", "take", *elsewhere))
        assert said("top", *elsewhere)["recordings"] == []
        assert [one["recording"] for one in said("top", "--data", data)["recordings"]] == ["take"]
        stopped = said("stop", "take", "--data", data)
        manifest = read_manifest(data / "take")
        output, _ = recorder.communicate(timeout=LIMIT_S)
    assert (stopped["recording"], stopped["films_awaited"]) == ("take", [])
    assert json.loads(output)["ended"] == "requested"  # what its verdict is a busy kitchen decides
    assert (manifest["state"], manifest["stopped"]["reason"]) == ("complete", "requested")
    kept = events_of(data / "take", "operator")
    assert [(one["kind"], one["body"]["text"]) for one in kept] == [
        ("mark", "the pan burns"),
        ("mark", "it was put out"),
        *[("pause", ""), ("resume", "")] * 2,
    ]
    (start_ns, end_ns), (_, last_ns) = pauses_of(data / "take")
    assert start_ns == began_ns < end_ns < last_ns < manifest["stopped"]["host_ns"]
    for words in (("mark", "take", "late"), ("pause", "take"), ("stop", "--abort", "late"), ("stop",)):
        assert "nothing is being recorded" in one_line(kitchensync(*words)), words


def test_it_begins_without_a_stream_only_for_a_reason_which_is_kept(kitchen, runtime, tmp_path):
    place, data = kitchen("--rings", "--fault", "refuse_port:gyroscope", seconds=0), tmp_path / "data"
    order = ["record", "take", "--data", data, "--hololens", place.host, "--streams", STREAMS]
    order += ["--gopro", "http://127.0.0.2:9", "--start-timeout", "8"]
    assert "127.0.0.2:9" in one_line(kitchensync(*order))
    assert not (data / "take").exists()
    done = kitchensync(*order, "--override", "the participant leaves at noon", "--seconds", "2", "--json")
    assert json.loads(done.stdout)["ended"] == "time", done.stderr
    override = read_manifest(data / "take")["override"]
    assert override["reason"] == "the participant leaves at noon"
    assert set(override["missing"]) == {"gopro", "hololens/gyroscope"}


def test_films_may_stay_on_the_card_so_that_the_next_one_can_begin(kitchen, runtime, tmp_path):
    place, data = kitchen("--rings", "--fault", "gopro_slow:2000", seconds=0), tmp_path / "data"
    order = record_command(place, data, "--streams", STREAMS)
    with running(order, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as recorder:
        wait_until_all_stream(recorder, runtime)
        assert said("stop", "take")["films_awaited"] == ["gopro"]
        assert read_manifest(data / "take")["state"] == "complete"
        assert said("top")["recordings"][0]["ledger_closed"] is True
        said("stop", "take", "--leave-films")
        recorder.communicate(timeout=LIMIT_S)
    assert json.loads((data / "take" / "gopro" / "media.json").read_text())["state"] == "pending"
    fetch = kitchensync("gopro", "fetch", data)
    assert fetch.returncode == 0, fetch.stderr


def test_what_is_aborted_is_kept_with_its_reason_and_counts_for_nothing(kitchen, runtime, tmp_path):
    place, data = kitchen("--rings", seconds=0), tmp_path / "data"
    with recording_all(place.host, runtime, data) as recorder:
        assert said("stop", "take", "--abort", "the smoke alarm went off")["recording"] == "take"
        recorder.communicate(timeout=LIMIT_S)
    manifest = read_manifest(data / "take")
    assert manifest["abandoned"]["reason"] == "the smoke alarm went off"
    (listed,) = said("list", data)["recordings"]
    assert (listed["aborted"], listed["releasable"]) == ("the smoke alarm went off", False)
    noted = json.loads(kitchensync("verify", data / "take", "--json").stdout)["notes"]
    assert "it was aborted and shall not be used: the smoke alarm went off" in noted
