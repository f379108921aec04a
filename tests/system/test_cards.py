"""The card of a recording in its two stages, over a camera whose film takes its time."""

from __future__ import annotations

import json
import subprocess
import time

import pytest
from processes import kitchensync, one_line, record_command, running, wait_until_all_stream

from kitchensync.storage.manifest import read_manifest

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(400)]

STREAMS = "gyroscope,accelerometer"


def card_of(recording, *options, exits=(0,)):
    done = kitchensync("card", recording, "--json", *options)
    assert done.returncode in exits, done.stderr
    return json.loads(done.stdout)


def test_the_first_card_says_by_the_small_copy_what_the_final_one_says_by_the_film(
    kitchen, runtime, tmp_path
):
    place, data = kitchen("--fault", "gopro_slow:80000", seconds=0), tmp_path / "data"
    order = record_command(place, data, "--streams", STREAMS)
    take = data / "take"
    with running(order, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as recorder:
        wait_until_all_stream(recorder, runtime)
        with pytest.raises(subprocess.TimeoutExpired):
            recorder.wait(25)
        assert kitchensync("mark", "take", "turn").returncode == 0
        assert kitchensync("stop", "take").returncode == 0
        while not list(take.glob("gopro/proxies/*.LRV")):
            assert recorder.poll() is None
            time.sleep(0.1)
        first = card_of(take)
        assert first["stage"] == "first"
        assert first["alignment"]["by"] == "the camera's small copy"
        acknowledged = card_of(take, "--acknowledge", "Ada")["acknowledged"]
        assert acknowledged["by"] == "Ada"
        assert acknowledged["stage"] in ("first", "final"), "the film may have come meanwhile"
        kitchensync("stop", "take", "--leave-films")  # refused where the film has come
        recorder.communicate(timeout=60)
    assert {line["name"] for line in first["lines"]} == {f"hololens/{name}" for name in STREAMS.split(",")}
    assert {line["status"] for line in first["lines"]} <= {"PASS", "WARN"}
    assert first["alignment"]["verdict"] in ("aligned", "check")
    assert "mark" in [event["kind"] for event in first["events"]]
    assert first["thumbnails"] == ["gopro/proxies/GX010001.THM"]
    assert kitchensync("gopro", "fetch", data).returncode == 0
    final = card_of(take)
    assert (final["stage"], final["alignment"]["by"]) == ("final", "the film")
    assert (final["agrees"], final["differs"]) == (True, [])
    assert read_manifest(take)["card"]["by"] == "Ada"
    assert card_of(take) == final, "a card is made once"


def test_nobody_reads_the_card_of_what_was_withdrawn(tmp_path, kitchen, runtime):
    place, data = kitchen("--rings", seconds=4), tmp_path / "data"
    kitchensync(
        "record", "take", "--data", data, "--hololens", place.host, "--streams", "gyroscope", "--seconds", "2"
    )
    assert kitchensync("withdraw", data / "take").returncode == 0
    assert "withdrew" in one_line(kitchensync("card", data / "take"))
