"""The library's wired class as it comes: the virtual camera has the real USB address, in a network of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

pytest.importorskip("open_gopro", reason="the extra `gopro` (open-gopro) is not installed")

INSIDE = """
import asyncio, sys
from pathlib import Path
from open_gopro import WiredGoPro
from open_gopro.models import constants
from kitchensync.virtual_kitchen.gopro.server import VirtualGoPro
from kitchensync.virtual_kitchen.kitchen import Kitchen
from kitchensync.virtual_kitchen.truth import Truth
from kitchensync.virtual_kitchen.world.motion import simulated_motion

kitchen = Kitchen(711, simulated_motion(711), Truth(Path(sys.argv[1]), 711))
camera = VirtualGoPro(kitchen, "172.27.111.51", 8080, "hero12", None)
camera.start()

async def take():
    async with WiredGoPro("711", poll_period=0.2) as gopro:
        assert (await gopro.http_setting.video_resolution.set(constants.settings.VideoResolution.NUM_4K)).ok
        assert (await gopro.http_command.set_shutter(shutter=constants.Toggle.ENABLE)).ok
        await asyncio.sleep(0.5)
        assert (await gopro.http_command.set_shutter(shutter=constants.Toggle.DISABLE)).ok
        files = (await gopro.http_command.get_media_list()).data.files
        assert [file.filename for file in files] == ["100GOPRO/GX010001.MP4"], files
        target = Path(sys.argv[1]) / "copy.MP4"
        assert (await gopro.http_command.download_file(camera_file=files[0].filename, local_file=target)).ok
        assert target.read_bytes() == (camera.camera.card.path / "GX010001.MP4").read_bytes()

try:
    asyncio.run(asyncio.wait_for(take(), 150))
finally:
    camera.stop()
print("whole")
"""


def test_unmodified_wired_camera(tmp_path: Path) -> None:
    network = "ip link set lo up && ip addr add 172.27.111.51/32 dev lo || exit 77"
    script = f'{network}; exec "$0" -c "$1" "$2"'
    command = [
        "unshare",
        "-n" if os.geteuid() == 0 else "-rn",
        "sh",
        "-c",
        script,
        sys.executable,
        INSIDE,
        str(tmp_path),
    ]
    environment = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=170, check=False, env=environment,
            cwd=Path(__file__).resolve().parents[3],
        )  # fmt: skip
    except FileNotFoundError:
        pytest.skip("no unshare on this computer")
    if done.returncode == 77 or "unshare:" in done.stderr:
        pytest.skip("this computer lets nobody make a network of its own")
    assert done.stdout.strip().endswith("whole"), done.stderr
