"""Tools that several test folders share: real processes, started and ended."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from kitchensync.capture.session.control import ask

COMMAND = str(Path(sys.executable).parent / "kitchensync")
LIMIT_S = 120


@dataclass
class Kitchen:
    """A running virtual kitchen."""

    host: str
    camera: str
    out: Path
    process: subprocess.Popen[str]

    def type(self, *lines: str) -> None:
        """Write lines to its standard input: `fault NAME:ARGS` plays a fault at once."""
        self.process.stdin.write("".join(f"{line}\n" for line in lines))
        self.process.stdin.flush()

    def truth(self) -> dict[str, Any]:
        """End it, now that nobody records it any more, and return what it says it sent."""
        self.process.send_signal(signal.SIGTERM)
        # It may have been about to go: the truth is written before it stops listening to signals.
        assert self.process.wait(timeout=LIMIT_S) in (0, -signal.SIGTERM)
        return json.loads((self.out / "truth.json").read_text())


def record_command(place: Kitchen, data: Path, *more: str) -> list[str]:
    """Return the command that records headset and camera of a kitchen as `take`."""
    devices = ["--hololens", place.host, "--gopro", place.camera]
    return [COMMAND, "record", "take", "--data", str(data), *devices, *more, "--json"]


@contextlib.contextmanager
def running(command: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Run a process for as long as the block lasts."""
    process = subprocess.Popen(command, text=True, start_new_session=True, **options)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe:
                pipe.close()


def kitchensync(*arguments: str | Path, limit_s: float = LIMIT_S) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    command = [COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)


def children(pid: int) -> dict[int, str]:
    """Return the command lines of the children of a process."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(stat[1]) == pid:
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (OSError, IndexError):
            continue
    return found


def wait_until_gone(pids: Iterable[int]) -> None:
    """Wait until none of these processes is there any more: one that has just begun may take a while to end."""
    until(lambda: not [pid for pid in pids if Path(f"/proc/{pid}").exists()], "the end of every process")


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    """Return the one line of a refusal; fail on a traceback or a flood."""
    assert done.returncode in (1, 2), done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    lines = [line for line in done.stderr.strip().splitlines() if not line.startswith(("Usage:", "Try "))]
    lines = [line for line in lines if line.strip() and not re.search(r": \d+ s, 0 packets", line)]
    assert len(lines) == 1, done.stderr
    return lines[0]


def in_small_disk(
    tmp_path: Path, command: str, megabytes: int = 20, limit_s: int = 90
) -> subprocess.CompletedProcess[str]:
    """Run a command in a mount namespace of its own, with a disk of some megabytes at DISK."""
    disk = tmp_path / "disk"
    disk.mkdir()
    script = f"mount -t tmpfs -o size={megabytes}m tmpfs {disk} || exit 77\n" + command.replace(
        "DISK", str(disk)
    )
    unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]
    try:
        done = subprocess.run(
            [*unshare, "sh", "-c", script], capture_output=True, text=True, timeout=limit_s, check=False
        )
    except FileNotFoundError:
        pytest.skip("no unshare on this computer")
    if done.returncode == 77 or "unshare:" in done.stderr:
        pytest.skip("this computer lets nobody mount a small disk")
    return done


def state_of(runtime: Path) -> dict[str, Any] | None:
    """Return what the one running recorder says of itself; None where none answers."""
    endpoint = next(runtime.glob("kitchensync/*/control"), None)
    return ask(endpoint, "state") if endpoint else None


def wait_until_all_stream(recorder: subprocess.Popen, runtime: Path) -> dict[str, Any]:
    """Wait until every stream of the take has delivered packets; return what the recorder says then."""

    def all_stream() -> dict[str, Any] | None:
        assert recorder.poll() is None, recorder.communicate()
        state = state_of(runtime)
        return state if state and all(one.get("first_host_ns") for one in state["streams"].values()) else None

    return until(all_stream, "packets of every stream", limit_s=LIMIT_S)


def wait_for_more(runtime: Path, seconds: float, stream: str, since: dict[str, Any]) -> None:
    """Wait until a stream has delivered packets of so many seconds since the recorder said `since`."""
    last_host_ns = since["streams"][stream]["last_host_ns"]

    def delivered() -> bool:
        state = state_of(runtime)
        return state is not None and state["streams"][stream]["last_host_ns"] >= last_host_ns + seconds * 1e9

    until(delivered, f"{seconds} s of {stream}", limit_s=LIMIT_S)


@contextlib.contextmanager
def recording_all(host: str, runtime: Path, data: Path) -> Iterator[subprocess.Popen]:
    """Record a headset as `take`; the block begins when every stream comes."""
    command = [COMMAND, "record", "take", "--data", str(data), "--hololens", host, "--json"]
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as recorder:
        wait_until_all_stream(recorder, runtime)
        yield recorder


def wait_until_synced(client: Any) -> None:
    """Wait until the queue server's file is on the disk: a kill may cost what a busy disk has not taken yet."""
    with client.client() as one:  # WAITAOF counts what its own connection wrote
        one.set("synced", "")
        one.delete("synced")
        while one.execute_command("WAITAOF", 1, 0, 5_000)[0] < 1:
            pass
