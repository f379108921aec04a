"""A virtual camera for tests: served on a free port, closed at the end of the block."""

from __future__ import annotations

import math
import shutil
import ssl
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import pytest

from kitchensync.virtual_kitchen.gopro.faults import (
    SELF_ENDING,
    CameraFault,
    CameraFaults,
    parse_camera_fault,
)
from kitchensync.virtual_kitchen.gopro.http import HomeNetwork
from kitchensync.virtual_kitchen.gopro.server import VirtualGoPro
from kitchensync.virtual_kitchen.kitchen import Kitchen
from kitchensync.virtual_kitchen.truth import Truth
from kitchensync.virtual_kitchen.world.host_clock import ComputerClock
from kitchensync.virtual_kitchen.world.motion import simulated_motion
from kitchensync.virtual_kitchen.world.scene import Scene


@lru_cache(maxsize=4)
def painted(seed: int) -> Scene:
    """Paint a kitchen once for all tests."""
    return Scene(seed)


def home_network(host: str) -> HomeNetwork:
    """Make a self-signed certificate for an address, with the system's openssl."""
    with tempfile.TemporaryDirectory(prefix="kitchen-tls-") as folder:
        key, certificate = Path(folder) / "key.pem", Path(folder) / "cert.pem"
        command = [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
        ]
        command += ["-keyout", str(key), "-out", str(certificate), "-days", "2", "-subj", "/CN=GoPro"]
        command += ["-addext", f"subjectAltName=IP:{host}"]
        subprocess.run(command, capture_output=True, check=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        return HomeNetwork(certificate.read_text(), "gopro", "kitchen", context)


FIRED = ("gopro_vanish", "gopro_500", *SELF_ENDING)
"""Faults that may be named without a moment: they begin when `camera.begin_fault` says so."""


def planned(fault: str) -> CameraFault:
    """Read a fault; one without a moment waits to be fired."""
    return CameraFault(fault, math.inf, math.inf) if fault in FIRED else parse_camera_fault(fault)


@contextmanager
def virtual_camera(
    folder: Path,
    *faults: str,
    model: str = "hero11",
    at_home: bool = False,
    chapter_s: float | None = None,
    name: str = "",
    seed: int = 3,
    clock: ComputerClock | None = None,
) -> Iterator[tuple[VirtualGoPro, str]]:
    """Serve a camera; yields it with its address. Its world goes by `clock`."""
    if at_home and shutil.which("openssl") is None:
        pytest.skip("no openssl on this computer: the camera can have no certificate")
    kitchen = Kitchen(seed, simulated_motion(seed), Truth(folder, seed))
    kitchen.__dict__["scene"] = painted(seed)
    kitchen.clock = clock or kitchen.clock
    home = home_network("127.0.0.1") if at_home else None
    plan = CameraFaults([planned(fault) for fault in faults])
    gopro = VirtualGoPro(
        kitchen, "127.0.0.1", 0, model, None, faults=plan, chapter_s=chapter_s, home=home, name=name
    )
    port = gopro.start()
    try:
        yield gopro, f"{'https' if at_home else 'http'}://127.0.0.1:{port}"
    finally:
        gopro.stop()
