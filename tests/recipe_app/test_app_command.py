"""`kitchensync app` as a process: it says when it is ready, ends at a signal, refuses in one line."""

from __future__ import annotations

import contextlib
import grp
import os
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from kitchensync.cli import main
from kitchensync.recipe_app.people.accounts import Accounts
from kitchensync.recipe_app.store import oplog
from kitchensync.recipe_app.store.app_records import AppRecords
from kitchensync.recipe_app.store.database import open_database
from kitchensync.storage.installation.key import kept_key
from kitchensync.storage.manifest import read_manifest, write_json
from kitchensync.virtual_kitchen.tablet import participate

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-m", "kitchensync", "app"]


@contextlib.contextmanager
def running(*options: str, heard: list[str] | None = None) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the app on a free port; yield it with its address; it is gone afterwards."""
    process = subprocess.Popen([*COMMAND, "--port", "0", *options], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        for line in iter(process.stdout.readline, ""):
            if line.startswith("ready "):
                break
            if heard is not None:
                heard.append(line)
        yield process, line.split("app=", 1)[1].strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_when_ready_and_ends_at_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    data = tmp_path / "new" / "recordings"
    with running("--data", str(data)) as (process, url):
        assert httpx.get(f"{url}api/v1/time", trust_env=False).json()["host_ns"] > 0
        assert data.is_dir()
        process.send_signal(number)
        assert process.wait(timeout=60) == 0


AT_ONCE = """
import os, signal, sys
from pathlib import Path
from kitchensync.recipe_app.web.serve import Setup, serve

def say(line):
    if line.startswith("ready"):
        os.kill(os.getpid(), signal.SIGTERM)

serve(Setup(Path(sys.argv[1]), "127.0.0.1", 0, None, None, False), say=say)
"""


def test_a_signal_in_the_moment_in_which_it_gets_ready_ends_it_too(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", AT_ONCE, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr


def test_the_demo_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with running("--demo") as (process, url):
        assert httpx.get(f"{url}api/v1/me", trust_env=False).json()["demo"]["pseudonym"] == "Basil"
        assert list(tmp_path.glob("*/_app/app.db"))
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
    assert list(tmp_path.iterdir()) == []


def test_beyond_loopback_it_is_https_that_our_own_authority_vouches_for(tmp_path: Path) -> None:
    with running("--data", str(tmp_path), "--host", "0.0.0.0") as (_, url):
        assert url.startswith("https://")
        port = url.rstrip("/").rpartition(":")[2]
        trusting = ssl.create_default_context(cafile=str(tmp_path / "_app" / "tls" / "ca.crt"))
        with httpx.Client(verify=trusting, trust_env=False) as client:
            for name in ("127.0.0.1", "localhost"):
                answer = client.get(f"https://{name}:{port}/ca.crt")
                assert answer.content == (tmp_path / "_app" / "tls" / "ca.crt").read_bytes()
                assert "strict-transport-security" in answer.headers
            refused = client.get(f"https://127.0.0.1:{port}/doctor", headers={"host": "kitchen.example"})
            assert refused.status_code == 403


def test_the_first_start_prints_an_invite_until_somebody_has_used_it(tmp_path: Path) -> None:
    def start(password: str) -> list[int]:
        said: list[str] = []
        with running("--data", str(tmp_path), heard=said) as (_, url):
            codes = [line.partition("#")[2].strip() for line in said if line.startswith("invite=")]
            bodies = [{"code": code, "password": password} for code in codes]
            return [
                httpx.post(f"{url}api/v1/invite", json=body, trust_env=False).status_code
                for body in bodies * 2
            ]

    assert start("short") == [422, 422]
    assert start("a long enough pass phrase") == [200, 403]
    assert start("a long enough pass phrase") == []


def test_it_refuses_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refusals = {
            f"127.0.0.1:{port} cannot be opened": ["--data", str(tmp_path), "--port", str(port)],
            "no such address": ["--data", str(tmp_path), "--host", "host.invalid"],
            "not a database address": ["--data", str(tmp_path), "--port", "0", "--database", "mysql://x"],
            "cannot be opened as the app's database": [
                *("--data", str(tmp_path), "--port", "0"),
                *("--database", f"postgresql://secret:word@/x?host={tmp_path}"),
            ],
        }
        for words, options in refusals.items():
            result = CliRunner().invoke(main, ["app", *options])
            assert (result.exit_code, len(result.stderr.splitlines())) == (1, 1), result.output
            assert words in result.stderr
            assert "word" not in result.stderr


def test_a_file_for_the_data_folder_is_wrong_usage(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    result = CliRunner().invoke(main, ["app", "--data", str(file)])
    assert (result.exit_code, file.read_text()) == (2, "mine")
    assert "is a file" in result.stderr


def test_operations_of_a_killed_app_are_on_the_disk(tmp_path: Path) -> None:
    said: list[str] = []
    with running("--data", str(tmp_path), heard=said) as (process, url):
        (invite,) = [line.partition("#")[2].strip() for line in said if line.startswith("invite=")]
        truth = participate(url, recording=None, seconds=0.1, seed=1, invite=invite)
        process.kill()
    database = open_database(tmp_path / "_app" / "app.db")
    with database.reading() as connection:
        assert oplog.first_fault(connection) is None
        stored = {op["op_id"]: op["host_ns"] for op in oplog.everything(connection)}
    database.close()
    assert {tap.op_id: tap.receipt_host_ns for tap in truth.taps}.items() <= stored.items()


def test_answers_are_not_held_back_by_the_network_stack() -> None:
    from kitchensync.recipe_app.web.serve import _listen

    with _listen("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP  # what asyncio asks before it switches Nagle's delay off


def test_what_the_app_writes_into_recordings_the_group_may_read(tmp_path: Path) -> None:
    soup, own = tmp_path / "soup_1", tmp_path / "_app"
    (tmp_path / "lab.toml").write_text(f'group = "{grp.getgrgid(os.getegid()).gr_name}"')
    own.mkdir(mode=0o755)
    soup.mkdir(mode=0o750)
    write_json(
        soup / "recording.json", {"schema": "recording/1", "recording": "soup_1", "state": "recording"}
    )
    (soup / "recording.json").chmod(0o640)
    said: list[str] = []
    with running("--data", str(tmp_path), heard=said) as (_, url):
        (invite,) = [line.partition("#")[2].strip() for line in said if line.startswith("invite=")]
        participate(url, recording="soup_1", seconds=0.1, seed=1, invite=invite)
    written = [path for path in soup.rglob("*") if path.is_file()]
    assert {path.name for path in written} >= {"recording.json", "tablet.jsonl"}
    assert "recipe" in read_manifest(soup)
    assert {oct(path.stat().st_mode & 0o777) for path in written} == {oct(0o640)}
    assert own.stat().st_mode & 0o777 == 0o700


def test_a_start_without_an_admin_takes_the_account_of_that_name(tmp_path: Path) -> None:
    own = tmp_path / "_app"
    own.mkdir()
    database = open_database(own / "app.db", kept_key(own))
    accounts = Accounts(AppRecords(database, now_ns=lambda: 5, utc_ns=lambda: 1_790_000_000_000_000_000))
    before = accounts.add_person("admin", ["operator"], actor="")
    accounts.accept_invite(accounts.invite(before, actor=""), "the pass phrase of an operator")
    database.close()
    said: list[str] = []
    with running("--data", str(tmp_path), heard=said) as (_, url), httpx.Client(base_url=url) as client:
        signed = {"pseudonym": "admin", "password": "the pass phrase of an operator"}
        assert client.post("/api/v1/desk/sign-in", json=signed).status_code == 403
        invite = next(line.partition("#")[2].strip() for line in said if line.startswith("invite="))
        body = {"code": invite, "password": "a long enough pass phrase"}
        assert client.post("/api/v1/invite", json=body).status_code == 200
        answer = client.post("/api/v1/desk/sign-in", json={**signed, "password": body["password"]})
        assert answer.json()["person"] == before
        assert client.get("/desk/audit").status_code == 200


@pytest.mark.parametrize(("options", "waits"), [((), True), (("--trusted-proxy", "127.0.0.1"), False)])
def test_a_forwarded_address_counts_only_from_a_proxy_that_is_named(
    tmp_path: Path, options: tuple[str, ...], waits: bool
) -> None:
    with running("--data", str(tmp_path), *options) as (_, url), httpx.Client(base_url=url) as client:
        answers = [
            client.post(
                "/api/v1/desk/sign-in",
                json={"pseudonym": "admin", "password": "a guess"},
                headers={"x-forwarded-for": f"192.0.2.{number}"},
            ).status_code
            for number in range(8)
        ]
    assert answers == ([403] * 5 + [429] * 3 if waits else [403] * 8)


def test_a_proxy_is_named_by_its_address(tmp_path: Path) -> None:
    refused = CliRunner().invoke(main, ["app", "--data", str(tmp_path), "--trusted-proxy", "*"])
    assert refused.exit_code == 2
    assert "no IP address" in refused.stderr
