"""An external queue server is checked before a recording is created; refusals are one line."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from processes import kitchensync, one_line
from waiting import until

from kitchensync.capture.errors import QueueUnavailable
from kitchensync.capture.queue import dry_run
from kitchensync.capture.queue.dry_run import check_server
from kitchensync.capture.queue.queue_connection import connect, wait_until_ready
from kitchensync.capture.queue.server import queue_binary

pytestmark = pytest.mark.slow


def free_port(host: str) -> int:
    """Return a free port whose cluster bus (ten thousand higher) is free as well."""
    for port in range(21_000, 45_000, 97):
        with socket.socket() as first, socket.socket() as other, contextlib.suppress(OSError):
            first.bind((host, port))
            other.bind((host, port + 10_000))
            return port
    pytest.skip("no free port")


@contextlib.contextmanager
def valkey(folder: Path, host: str, *options: str) -> Iterator[str]:
    """Run a real server with these options during the block; yield its address."""
    port = free_port(host)
    command = [str(queue_binary()), "--bind", host, "--port", str(port), "--dir", str(folder), "--save", ""]
    process = subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL)
    url = f"redis://{host}:{port}/0"
    try:
        with connect(url) as client:
            wait_until_ready(client, url)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=60)


def keys_left(url: str) -> list[bytes]:
    with connect(url) as client:
        return client.keys("*")


def refused(url: str) -> str:
    with pytest.raises(QueueUnavailable) as caught:
        check_server(url)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_suitable_server_is_left_unchanged(tmp_path, loopback_host):
    with valkey(tmp_path, loopback_host) as url:
        with connect(url) as client:
            client.set("somebody's", "1")
        check_server(url)
        assert keys_left(url) == [b"somebody's"]


@pytest.mark.parametrize("slots", ["all on this node", "none yet"])
def test_a_cluster_is_refused_before_anything_is_created(slots, tmp_path, loopback_host):
    home = tmp_path / "server"
    home.mkdir()
    with valkey(home, loopback_host, "--cluster-enabled", "yes") as url:
        if slots == "all on this node":
            with connect(url) as client:
                client.execute_command("CLUSTER ADDSLOTSRANGE", 0, 16383)
                until(
                    lambda: client.execute_command("CLUSTER INFO")["cluster_state"] == "ok", "a whole cluster"
                )
        record = ["record", "take", "--data", tmp_path / "data", "--hololens", loopback_host]
        line = one_line(kitchensync(*record, "--redis", url))
        assert "cluster" in line
        assert url.removesuffix("/0") in line
        assert not (tmp_path / "data").exists()
        with connect(url) as client:  # a server that hides its configuration
            client.execute_command("ACL SETUSER", "cook", "on", ">secret", "~*", "&*", "+@all", "-info")
        assert "cluster" in refused(url.replace("redis://", "redis://cook:secret@"))
        assert keys_left(url) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--maxmemory", "16mb"], "memory"),
        (["--maxmemory", "1gb", "--maxmemory-policy", "allkeys-lru"], "maxmemory-policy"),
        (["--rename-command", "XREADGROUP", ""], "XREADGROUP"),
        (["--min-replicas-to-write", "1"], "replicas"),
    ],
    ids=["small", "evicts", "old", "wants replicas"],
)
def test_missing_server_features_are_named(options, message, tmp_path, loopback_host):
    with valkey(tmp_path, loopback_host, *options) as url:
        assert message.lower() in refused(url).lower()
        with contextlib.suppress(redis.ResponseError):
            assert keys_left(url) == []


@pytest.mark.parametrize("rule", ["-xack", "-info -xdel", "resetkeys ~other:*", "-@stream"])
def test_a_user_without_all_permissions_is_refused(rule, tmp_path, loopback_host):
    with valkey(tmp_path, loopback_host) as url:
        with connect(url) as client:
            client.execute_command("ACL SETUSER", "cook", "on", ">secret", "~*", "&*", "+@all", *rule.split())
        line = refused(url.replace("redis://", "redis://cook:secret@"))
        assert "permission" in line.lower()
        assert "secret" not in line
        if "key" not in rule:
            assert keys_left(url) == []


def test_a_password_is_not_shown(loopback_host, monkeypatch):
    monkeypatch.setattr("kitchensync.capture.queue.dry_run.RUNNING_READY_S", 0.1)
    line = refused(f"redis://cook:secret@{loopback_host}:9")
    assert "secret" not in line


@contextlib.contextmanager
def answering(host: str, answer: bytes) -> Iterator[str]:
    """Give the same answer to every command during the block; yield the address."""

    class Same(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError):
                while self.request.recv(65536):
                    self.request.sendall(answer)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server((host, 0), Same) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"redis://{host}:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        *(b"+OK\r\n", b"+PONG\r\n", b":1\r\n", b"*1\r\n:1\r\n", b"$-1\r\n", b",inf\r\n", b"+\xff\r\n"),
        *(b"-MOVED\r\n", b"-ASK x\r\n", bytes(range(256))),
    ],
)
def test_a_server_that_is_not_redis_is_refused_in_one_line(answer, loopback_host, monkeypatch):
    monkeypatch.setattr(dry_run, "RUNNING_READY_S", 0.2)
    with answering(loopback_host, answer) as url:
        assert url in refused(url)
