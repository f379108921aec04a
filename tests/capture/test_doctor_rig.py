"""`doctor --rig`: how long a rig can be recorded, against the figures of the guide for labs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from kitchensync.cli import main

FULL_RIG = """\
link = "{link}"
pv_width = 1920
pv_height = 1080
streams = ["pv", "vlc_leftfront", "vlc_leftleft", "vlc_rightfront", "vlc_rightright", "depth_ahat", "gyroscope",
  "accelerometer", "magnetometer", "spatial_input", "eye_tracking", "microphone"]
[hololens]
hololens = "127.0.0.1"
[gopro]
gopro = "http://127.0.0.1:1"
"""


@pytest.mark.slow
@pytest.mark.parametrize(("link", "gb_an_hour"), [("wifi", 12 + 27), ("wired", 185 + 27)])
def test_an_hour_is_as_large_as_the_guide_says(link: str, gb_an_hour: float, tmp_path: Path) -> None:
    rig = tmp_path / "rig.toml"
    rig.write_text(FULL_RIG.format(link=link))
    words = ["doctor", "--rig", str(rig), "--minutes", "60", "--data", str(tmp_path), "--json"]
    found = json.loads(CliRunner().invoke(main, words).stdout)
    assert found["needed_bytes"] == pytest.approx(gb_an_hour * 1e9, rel=0.1)
    assert found["minutes_left"] == pytest.approx(60 * found["free_bytes"] / found["needed_bytes"], abs=1.001)
    disk = next(one for one in found["findings"] if one["what"].endswith("disk space"))
    assert f"room for {found['minutes_left']} min, 60 are needed" in disk["seen"]
