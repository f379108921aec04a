"""An S3 server of another hand, in a process of its own on loopback."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

KEYS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
}


@contextlib.contextmanager
def s3_server(folder: Path) -> Iterator[None]:
    """Run it, with the environment that leads to it; `folder` takes its log."""
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"],
            stdout=output,
            stderr=output,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
    try:
        waiter = threading.Event()
        while not (found := re.search(r"http://127.0.0.1:\d+", log.read_text())):
            assert process.poll() is None, log.read_text()
            waiter.wait(0.1)
        with pytest.MonkeyPatch.context() as patch:
            for name, value in KEYS.items():
                patch.setenv(name, value)
            patch.setenv("AWS_ENDPOINT_URL", found.group(0))
            yield
    finally:
        process.terminate()
        process.wait()
