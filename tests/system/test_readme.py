"""Every command that the README shows is a command that runs, in the order shown, on a kitchen that is virtual."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from processes import COMMAND, LIMIT_S, running

from kitchensync.cli import COMMANDS

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]
REPOSITORY = Path(__file__).resolve().parents[2]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
SHOWN = [line.strip() for line in re.findall(r"^    ((?:make|kitchensync) .*)$", README, re.MULTILINE)]


def test_the_readme_shows_the_commands_that_this_test_knows():
    names = [" ".join(line.split()[:2]) for line in SHOWN]
    assert names == [
        "make demo",
        "make test",
        "make install",
        "kitchensync record",
        "kitchensync verify",
        "kitchensync sync",
        "kitchensync report",
        "kitchensync app",
        "kitchensync simulate",
    ]


def test_the_readme_lists_the_commands_in_the_sections_of_the_help():
    rows = re.findall(r"^\| ([A-Z][a-z ]+) \| ((?:`[a-z-]+`(?:, )?)+) \|$", README, re.MULTILINE)
    listed = {section: re.findall("`([a-z-]+)`", names) for section, names in rows}
    assert listed == {section: list(table) for section, table in COMMANDS.items()}


def test_make_tasks_of_the_readme_exist():
    for line in SHOWN:
        if line.startswith("make"):
            task = line.split()[1]
            done = subprocess.run(
                ["make", "-n", task], cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=False
            )
            assert done.returncode == 0, done.stderr


def test_the_first_session_runs_as_shown(kitchen, runtime, tmp_path):
    place = kitchen(seconds=12)
    addresses = {"192.168.1.20": place.host, "usb:C3501325012789": place.camera}
    for line in SHOWN:
        words = [addresses.get(word, word) for word in shlex.split(line.partition("#")[0])]
        if words[0] != "kitchensync" or words[1] in ("app", "simulate"):
            continue
        done = subprocess.run(
            [COMMAND, *words[1:]], cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
        assert "Traceback" not in done.stderr
        is_judged = words[1] in (
            "record",
            "verify",
        )  # a busy computer takes packets too late, and both say so
        assert done.returncode == 0 or (is_judged and "FAIL" in done.stdout), (line, done.stdout, done.stderr)
    recording = tmp_path / "data" / "take-1"
    assert (recording / "sync" / "report.html").stat().st_size > 10_000
    aligned = json.loads(next((recording / "sync" / "alignment").glob("*.json")).read_text())
    assert aligned["status"] in ("aligned", "check")


@pytest.mark.promise("Commands and documents say the same, and a mistake is one line")
def test_the_app_and_the_simulator_start_as_shown(tmp_path, loopback_host):
    lines = {line.split()[1]: shlex.split(line)[1:] for line in SHOWN}
    app = [COMMAND, *lines["app"], "--port", "0"]
    (tmp_path / "data").mkdir()
    (tmp_path / "kitchensync").mkdir()
    (tmp_path / "kitchensync" / "examples").symlink_to(REPOSITORY / "kitchensync" / "examples")
    with running(app, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert any(line.startswith("ready app=") for line in server.stdout)
    hosts = ["--hololens-host", loopback_host, "--gopro-host", loopback_host, "--gopro-port", "0"]
    simulate = [COMMAND, *lines["simulate"], *hosts]
    with running(simulate, cwd=tmp_path, stdout=subprocess.PIPE) as simulator:
        assert simulator.stdout.readline().startswith("ready gopro=")
