"""`kitchensync app` as a process: it says when it is ready, ends at a signal, refuses in one line."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from recipe_app.cli import app

COMMAND = [sys.executable, "-c", "from recipe_app.cli import app; app()"]


@contextlib.contextmanager
def running(*options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the app on a free port; yield it with its address; it is gone afterwards."""
    process = subprocess.Popen([*COMMAND, "--port", "0", *options], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        lines = iter(process.stdout.readline, "")
        ready = next(line for line in lines if line.startswith("ready "))
        yield process, ready.split("app=", 1)[1].strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_when_ready_and_ends_at_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    data = tmp_path / "new" / "recordings"
    with running("--data", str(data)) as (process, url):
        assert httpx.get(f"{url}api/clock", trust_env=False).json()["host_ns"] > 0
        assert data.is_dir()
        process.send_signal(number)
        assert process.wait(timeout=30) == 0


def test_the_demo_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with running("--demo") as (process, url):
        body = {"op_id": "begin-0001"}
        session = httpx.post(f"{url}api/standalone", json=body, trust_env=False).json()["recording"]
        assert httpx.get(f"{url}follow/{session}", trust_env=False).status_code == 200
        assert list(tmp_path.glob("*/_standalone/*/session.json"))
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
    assert list(tmp_path.iterdir()) == []


def test_a_generated_token_is_in_the_printed_address(tmp_path: Path) -> None:
    with running("--data", str(tmp_path), "--token") as (_, url):
        address, token = url.split("?token=")
        assert re.fullmatch(r"[A-Za-z0-9_-]{20,}", token)
        assert httpx.get(f"{address}api/clock", trust_env=False).status_code == 401
        with_token = {"authorization": f"Bearer {token}"}
        assert httpx.get(f"{address}api/clock", headers=with_token, trust_env=False).status_code == 200


def test_it_refuses_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refusals = {
            f"127.0.0.1:{port} cannot be opened": ["--data", str(tmp_path), "--port", str(port)],
            "add --token": ["--data", str(tmp_path), "--host", "0.0.0.0"],
            "a token has at least": ["--data", str(tmp_path), "--token", "short"],
            "no such folder of recipes": ["--data", str(tmp_path), "--recipes", str(tmp_path / "absent")],
            "cannot be used for recordings": ["--data", str(file)],
            "no such address": ["--data", str(tmp_path), "--host", "host.invalid", "--token", "long-enough"],
        }
        for words, options in refusals.items():
            result = CliRunner().invoke(app, options)
            assert (result.exit_code, len(result.stderr.splitlines())) == (1, 1), result.output
            assert words in result.stderr


def test_help_has_an_example() -> None:
    assert "Example: kitchensync app " in CliRunner().invoke(app, ["--help"]).stdout


def test_operations_of_a_killed_app_are_on_the_disk(tmp_path: Path) -> None:
    with (
        running("--data", str(tmp_path)) as (process, url),
        httpx.Client(base_url=url, trust_env=False) as client,
    ):
        session = client.post("/api/standalone", json={"op_id": "begin-0001"}).json()["recording"]
        choice = {"op_id": "choose-0001", "recipe": "tea_and_toast"}
        assert client.post(f"/api/recordings/{session}/recipe", json=choice).status_code == 200
        for number in range(3):
            body = {"op_id": f"operation-{number}", "kind": "done"}
            assert client.post(f"/api/recordings/{session}/operations", json=body).status_code == 200
        process.kill()
    lines = (tmp_path / "_standalone" / session / "events" / "tablet.jsonl").read_text().splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["recipe", "done", "done", "done"]


def test_answers_are_not_held_back_by_the_network_stack() -> None:
    from recipe_app.serve import _listen

    with _listen("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP  # what asyncio asks before it switches Nagle's delay off
