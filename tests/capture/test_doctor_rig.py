"""`doctor --rig`: the possible duration of a recording, compared with the guide for labs."""

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
def test_an_hour_has_the_size_stated_in_the_guide(link: str, gb_an_hour: float, tmp_path: Path) -> None:
    rig = tmp_path / "rig.toml"
    rig.write_text(FULL_RIG.format(link=link))
    arguments = ["doctor", "--rig", str(rig), "--minutes", "60", "--data", str(tmp_path), "--json"]
    answer = json.loads(CliRunner().invoke(main, arguments).stdout)
    assert answer["needed_bytes"] == pytest.approx(gb_an_hour * 1e9, rel=0.1)
    assert answer["minutes_left"] == pytest.approx(
        60 * answer["free_bytes"] / answer["needed_bytes"], abs=1.001
    )
    disk = next(finding for finding in answer["findings"] if finding["what"].endswith("disk space"))
    assert f"room for {answer['minutes_left']} min, 60 are needed" in disk["seen"]
