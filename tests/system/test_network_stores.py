"""`record --nas` with stores as bad as they come: absent, read-only, full, hanging. The recording does not notice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from processes import (
    COMMAND,
    children,
    in_small_disk,
    kitchensync,
    running,
    wait_until_all_stream,
    wait_until_gone,
)

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

FOUR_STORES = """
mkdir DISK/readonly DISK/full DISK/well
mount -t tmpfs -o ro tmpfs DISK/readonly && mount -t tmpfs -o size=200k tmpfs DISK/full || exit 77
stores="DISK/absent DISK/readonly DISK/full DISK/well"
{command} record take --data {out}/data --hololens {host} $(printf -- '--nas %s ' $stores) --json \\
  > {out}/record.json 2> {out}/record.err
echo recorded $?
{command} list {out}/data --json > {out}/list.json
{command} verify DISK/full/take --json > {out}/full.json; echo full $?
{command} move {out}/data/take $(printf -- '--to %s ' $stores) --keep --json > {out}/move.json
echo moved $?
{command} verify DISK/well/take --json > {out}/copy.json
ls DISK/absent DISK/readonly 2>&1
"""


def equal(streams: dict, truth: dict) -> None:
    """What is stored is what the headset sent."""
    for name, sent in truth["streams"].items():
        assert streams[name]["stored"] == streams[name]["received"] == sent["packets"], name
        assert (streams[name]["sha256"], streams[name]["duplicates"]) == (sent["sha256"], 0), name


def test_three_bad_stores_disturb_neither_the_recording_nor_the_fourth(kitchen, runtime, tmp_path):
    place = kitchen(seconds=13)
    script = FOUR_STORES.format(command=COMMAND, out=tmp_path, host=place.host)
    done = in_small_disk(tmp_path, script, megabytes=600)
    truth = place.truth()
    assert "recorded 0" in done.stdout, done.stderr
    answer = json.loads((tmp_path / "record.json").read_text())
    equal(answer["streams"], truth)
    assert not [reason for reason in answer["reasons"] if "take copies" in reason]
    states = {Path(one["place"]).name: one["state"] for one in answer["stores"]}
    assert states == {"absent": "away", "readonly": "refused", "full": "unfinished", "well": "copied"}
    first = (tmp_path / "record.err").read_text().splitlines()[0]
    assert "absent: cannot take copies: there is no such folder" in first
    assert "read-only file system" in first
    assert ", 0 packets" in first
    (line,) = json.loads((tmp_path / "list.json").read_text())["recordings"]
    assert {Path(one["place"]).name: one["state"] for one in line["stores"]} == states
    assert "full 0" in done.stdout
    full = json.loads((tmp_path / "full.json").read_text())
    assert (full["life"], full["status"], full["checked"]) == ("copying", "WARN", False)
    assert "moved 1" in done.stdout
    states = json.loads((tmp_path / "move.json").read_text())["recordings"]
    problems = {Path(state["target"]).name: state["problem"] for state in states}
    assert "no such folder" in problems["absent"]
    assert "read-only file system" in problems["readonly"]
    assert "no space left" in problems["full"]
    assert problems["well"] == ""
    equal(json.loads((tmp_path / "copy.json").read_text())["streams"], truth)
    log = (tmp_path / "data" / "take" / "logs" / "mover.log").read_text().splitlines()
    during = {Path(state["target"]).name for state in map(json.loads, log) if state["problem"]}
    assert {"absent", "readonly"} <= during <= {"absent", "readonly", "full"}


def test_a_store_that_hangs_is_left_behind_and_gets_its_copy_later(kitchen, runtime, tmp_path):
    place = kitchen(seconds=6)
    data, store = tmp_path / "data", tmp_path / "store"
    store.mkdir()
    command = [COMMAND, "record", "take", "--data", str(data), "--hololens", place.host, "--json"]
    with running([*command, "--nas", str(store)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as recorder:
        wait_until_all_stream(recorder, runtime)
        (mover,) = [
            pid for pid, line in children(recorder.pid).items() if "kitchensync.storage.move.mover" in line
        ]
        os.kill(mover, signal.SIGSTOP)  # as a process that waits for a dead network
        output, errors = recorder.communicate(timeout=120)
    assert recorder.returncode == 0, errors
    wait_until_gone([mover])
    truth = place.truth()
    equal(json.loads(output)["streams"], truth)
    assert json.loads(output)["stores"][0]["state"] == "unfinished"
    begun = kitchensync("verify", store / "take", "--json")
    assert begun.returncode == 0
    assert json.loads(begun.stdout)["life"] == "copying"
    moved = kitchensync("move", data / "take", "--to", store, "--keep")
    assert moved.returncode == 0, moved.stderr
    equal(json.loads(kitchensync("verify", store / "take", "--json").stdout)["streams"], truth)
