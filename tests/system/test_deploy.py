"""What `deploy/` says is understood by systemd, and its commands run: with PostgreSQL, two stores, two workers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from databases import emptied, postgresql
from processes import COMMAND, LIMIT_S, kitchensync, running
from small_recordings import write_recordings

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(300)]
DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("kitchensync-*"))
SERVICES = [path.stem for path in UNITS if path.suffix == ".service"]
INSTALLED = "/opt/kitchensync/bin/kitchensync"
"""Where the units say that the command is."""
MOST_EXPOSED = "45"
"""Tenths of systemd's own measure, at which it still says OK."""


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with postgresql() as address:
        yield emptied(address)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A computer's folders as server.env names them, with recordings."""
    for folder in ("srv/kitchensync/data", "mnt/nas-a/kitchen", "mnt/nas-b/kitchen"):
        (tmp_path / folder).mkdir(parents=True)
    write_recordings(tmp_path / "srv/kitchensync/data")
    return tmp_path


def started(service: str, place: Path, database: str) -> tuple[list[str], dict[str, str]]:
    """Return the words and the environment with which systemd starts a service, on the folders of `place`."""
    told = (DEPLOY / "systemd" / "server.env").read_text()
    for theirs, ours in (("/srv", f"{place}/srv"), ("/mnt", f"{place}/mnt"), ("0.0.0.0", "127.0.0.1")):
        told = told.replace(theirs, ours)
    told = told.replace("postgresql:///kitchensync?host=/run/postgresql", database)
    lines = [line for line in told.splitlines() if line and not line.startswith("#")]
    environment = dict(line.split("=", 1) for line in lines)
    unit = (DEPLOY / "systemd" / f"{service}.service").read_text()
    (command,) = [line for line in unit.splitlines() if line.startswith("ExecStart=")]
    words = []
    for word in command.removeprefix("ExecStart=").split():  # an unquoted $NAME becomes its words
        words += environment[word[1:]].split() if word.startswith("$") else [word]
    assert words[0] == INSTALLED
    return [COMMAND, *words[1:]], os.environ | environment


def done(words: list[str], environment: dict[str, str]) -> str:
    """Run a command to its end and return what it printed."""
    ran = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_understands_the_units_and_finds_them_closed_enough(tmp_path: Path) -> None:
    for unit in UNITS:
        text = unit.read_text().replace(INSTALLED, COMMAND)
        (tmp_path / unit.name).write_text(text)
    for unit in UNITS:
        looked = subprocess.run(
            ["systemd-analyze", "verify", tmp_path / unit.name], capture_output=True, text=True, check=False
        )
        assert (looked.returncode, looked.stderr) == (0, ""), unit.name
    for service in SERVICES:
        judge = ["systemd-analyze", "security", "--offline=true", f"--threshold={MOST_EXPOSED}"]
        judged = subprocess.run(
            [*judge, tmp_path / f"{service}.service"], capture_output=True, text=True, check=False
        )
        assert judged.returncode == 0, judged.stdout[-200:] + judged.stderr


def test_the_app_of_the_unit_serves_from_postgresql_and_is_backed_up(place: Path, database: str) -> None:
    words, environment = started("kitchensync-app", place, database)
    with running([*words, "--port", "0"], env=environment, stdout=subprocess.PIPE) as app:
        address = next(line for line in app.stdout if line.startswith("ready app=")).split("=", 1)[1].strip()
        with urllib.request.urlopen(address, timeout=LIMIT_S) as page:
            assert page.status == 200
        done(*started("kitchensync-backup", place, database))
    assert not (place / "srv/kitchensync/data/_app/app.db").exists()
    assert (place / "mnt/nas-a/kitchen-app.backup").stat().st_size > 1000


def test_the_mover_of_the_unit_copies_to_both_stores(place: Path, database: str) -> None:
    data = place / "srv/kitchensync/data"
    paths = [path for path in data.glob("take*/**/*") if path.suffix in (".h5", ".MP4")]
    before = {path.relative_to(data): path.read_bytes() for path in paths}
    assert before
    done(*started("kitchensync-move", place, database))
    for store in ("nas-a", "nas-b"):
        copied = {name: (place / "mnt" / store / "kitchen" / name).read_bytes() for name in before}
        assert copied == before
    assert not any(path.exists() for path in paths)  # they are old, and both copies were read back


def test_commands_of_the_containers_are_commands_that_we_have() -> None:
    text = (DEPLOY / "compose.yaml").read_text()
    services = yaml.safe_load(text)["services"]
    for name in ("app", "mover"):
        looked = kitchensync(*services[name]["command"], "--help")
        assert looked.returncode == 0, looked.stderr
    assert "PASSWORD" not in text
    built = (DEPLOY / "Containerfile").read_text()
    (begun,) = [line for line in built.splitlines() if line.startswith("CMD ")]
    assert kitchensync(*json.loads(begun.removeprefix("CMD ")), "--help").returncode == 0


def test_the_job_of_a_cluster_writes_reports_on_its_workers(place: Path) -> None:
    commands = place / "bin"
    commands.mkdir()
    srun = (
        commands / "srun"
    )  # two tasks, as Slurm's own starts one for each of --ntasks; its one option is not theirs
    srun.write_text('#!/bin/bash\nshift\n"$@" &\n"$@" &\ntrap "kill $(jobs -p | xargs)" TERM\nwait\n')
    srun.chmod(0o755)
    path = f"{commands}:{Path(COMMAND).parent}:{os.environ['PATH']}"
    environment = os.environ | {
        "PATH": path, "HOME": str(place), "SCHEDULER_HOST": "127.0.0.1", "SLURM_SUBMIT_DIR": str(place),
    }  # fmt: skip
    job = [
        "bash",
        str(DEPLOY / "slurm" / "batch.sbatch"),
        "report",
        str(place / "srv/kitchensync/data"),
        "--json",
    ]
    with running(job, env=environment, stdout=subprocess.PIPE) as started_job:
        said = json.loads(started_job.communicate(timeout=LIMIT_S)[0])
    assert started_job.returncode == 0
    recordings = list((place / "srv/kitchensync/data").glob("*/recording.json"))
    assert said["counts"] == {"written": len(recordings)}
    assert all((path.parent / "sync/report.html").exists() for path in recordings)
    assert list(place.glob(".kitchensync-batch-*")) == []
