"""Rerun's viewer: the one that was installed with us, on this computer's screen, heard by this computer alone."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from typing import Any

from calibration.errors import CalibrationError

VIEWER_MEMORY = "2GB"
"""What the viewer keeps: it lets go of the oldest beyond this."""
VIEWER_STARTS_S = 60.0
LOOPBACK = "127.0.0.1"


def open_viewer(sink: Any, layout: Any) -> None:
    """Open the viewer and let a recording stream talk to it; by itself it would listen on every interface.

    Raises CalibrationError where there is no screen, or the viewer does not start.
    """
    if sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys():
        raise CalibrationError(
            "there is no screen here; give --save FILE.rrd and open that where there is one"
        )
    with socket.socket() as free:
        free.bind((LOOPBACK, 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-P", "-m", "rerun_cli", "--bind", LOOPBACK, "--port", str(port)]
    command += ["--memory-limit", VIEWER_MEMORY, "--hide-welcome-screen"]
    with tempfile.TemporaryFile("w+") as told:
        viewer = subprocess.Popen(command, stdout=told, stderr=told, start_new_session=True)
        until_s = time.monotonic() + VIEWER_STARTS_S
        while not _answers(port):
            if viewer.poll() is not None or time.monotonic() > until_s:
                viewer.kill()
                told.seek(0)
                why = (told.read().strip().splitlines() or ["it says nothing"])[-1]
                raise CalibrationError(f"the viewer does not start ({why}); try --save FILE.rrd")
            time.sleep(0.1)
    sink.connect_grpc(f"rerun+http://{LOOPBACK}:{port}/proxy", default_blueprint=layout)


def _answers(port: int) -> bool:
    try:
        socket.create_connection((LOOPBACK, port), 1).close()
    except OSError:
        return False
    return True
