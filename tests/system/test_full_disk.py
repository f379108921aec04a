"""A disk that becomes full while recording: a clean stop, named losses, files that all open."""

from __future__ import annotations

import json
import sys

import pytest
from processes import COMMAND, Kitchen, in_small_disk

pytestmark = [pytest.mark.system, pytest.mark.timeout(240)]

SCRIPT = """
{command} record take --data DISK/data --hololens {host} --json > {out}/record.json &
recorder=$!
for turn in $(seq 200); do
    {python} -c 'from capture.control import ask, running; import sys
states = [ask(endpoint, "state") for _, endpoint in running()]
sys.exit(0 if states and all(s.get("first_host_ns") for s in states[0]["streams"].values()) else 1)' && break
    sleep 0.2
done
sleep 2
dd if=/dev/zero of=DISK/filler bs=1M count={fill} 2>/dev/null
wait $recorder
echo code $?
{command} verify DISK/data/take --json > {out}/verify.json
{python} -c 'import h5py, pathlib, sys
for path in pathlib.Path(sys.argv[1]).rglob("*.h5"): h5py.File(path).close()
parts = [str(path) for path in pathlib.Path(sys.argv[1]).rglob("*.part")]
print("leftovers", parts, pathlib.Path(sys.argv[1], ".kitchensync").exists())' \
    DISK/data
"""


def run(place: Kitchen, tmp_path, fill: int) -> tuple[str, dict, dict]:
    """Record on a disk of 620 MB and put a file of `fill` MB beside the recording."""
    script = SCRIPT.format(command=COMMAND, python=sys.executable, host=place.host, out=tmp_path, fill=fill)
    done = in_small_disk(tmp_path, script, megabytes=620)
    assert "Traceback" not in done.stderr, done.stderr
    answers = [json.loads((tmp_path / name).read_text()) for name in ("record.json", "verify.json")]
    return done.stdout, answers[0], answers[1]


def test_a_disk_that_gets_low_ends_the_take_with_everything_stored(kitchen, runtime, tmp_path):
    output, answer, checked = run(kitchen(seconds=40), tmp_path, fill=450)
    assert "code 0" in output
    assert (answer["ended"], answer["status"]) == ("no_space", "WARN")
    assert any("nearly full" in reason for reason in answer["reasons"])
    for name, facts in checked["streams"].items():
        assert facts["stored"] == facts["received"] > 0, name
    assert "leftovers [] False" in output


def test_a_disk_that_is_full_at_once_names_what_is_lost(kitchen, runtime, tmp_path):
    output, answer, checked = run(kitchen(seconds=40), tmp_path, fill=10_000)
    assert answer["ended"] == "no_space"
    for name, facts in checked["streams"].items():
        missing = sum(last - first + 1 for first, last in facts["missing"])
        assert facts["received"] == facts["stored"] + missing, name
        assert facts["duplicates"] == 0, name
    assert not any("no cause is named" in reason for reason in checked["reasons"])
    assert "leftovers [] False" in output
