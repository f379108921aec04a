"""A rig file: what it says, what it is refused for, and settings that hold for one headset alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from capture.commands.rig import record_options
from capture.errors import BadRig
from capture.order import RecordingRequest
from capture.rig.rig_file import order_from
from capture.rig.template import template
from sensors.hololens.catalogue import DEFAULT_SET, STREAMS, Profile, describe

PREFIXES = ("# pv_", "# vlc_", "# depth_", "# microphone", "# eye_", "# extended_")
TWO = """\
link = "wired"
pv_hz = 15
streams = ["a/pv", "a/depth_ahat", "b/pv", "b/depth_ahat"]
[hololens]
a = "127.0.0.1"
[hololens.b]
address = "127.0.0.2"
link = "wifi"
pv_width = 1280
pv_height = 720
"""


def order(folder: Path, text: str, **options: Any) -> RecordingRequest:
    rig = folder / "rig.toml"
    rig.write_text(text)
    return order_from("take", record_options() | {"rig": rig, "data": folder} | options)


def test_each_headset_has_the_settings_of_the_rig_and_its_own(tmp_path: Path) -> None:
    first, second = order(tmp_path, TWO).headsets
    assert (first.name, first.host, second.name, second.host) == ("a", "127.0.0.1", "b", "127.0.0.2")
    assert Profile(**first.profile) == Profile(link="wired", pv_hz=15)
    assert Profile(**second.profile) == Profile(link="wifi", pv_hz=15, pv_width=1280, pv_height=720)
    assert describe("depth_ahat", Profile(**first.profile))["codec"] == "raw"
    assert describe("depth_ahat", Profile(**second.profile))["codec"] == "h265"


def test_what_is_asked_for_on_the_command_line_holds_for_all(tmp_path: Path) -> None:
    assert {headset.profile["link"] for headset in order(tmp_path, TWO, link="wifi").headsets} == {"wifi"}


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ('[hololens.b]\nlink = "wifi"\n', "address"),
        ('[hololens.b]\naddress = "127.0.0.2"\nstreams = ["pv"]\n', "streams"),
        ('[hololens.b]\naddress = "127.0.0.2"\npv_width = 641\n', "b: pv 641x360"),
        ('[hololens.b]\naddress = "127.0.0.2"\npv_focus_mm = "near"\n', "pv_focus_mm"),
        ('[hololens.b]\naddress = "127.0.0.2"\nlink = "string"\n', "link"),
        ("[hololens]\nb = 5\n", "[hololens]"),
    ],
)
def test_what_a_table_of_a_headset_is_refused_for(tmp_path: Path, table: str, named: str) -> None:
    text = '[hololens]\na = "127.0.0.1"\n' + table if table.startswith("[hololens.b]") else table
    with pytest.raises(BadRig) as refused:
        order(tmp_path, text)
    assert named in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_rig_file_that_is_written_names_all_there_is_and_can_be_read(tmp_path: Path) -> None:
    text = template("192.168.1.20", "http://10.0.0.2:8080")
    written = order(tmp_path, text)
    assert written.headsets[0].streams == list(DEFAULT_SET)
    assert written.headsets[0].profile == {"link": "wifi"}
    lines = text[: text.index("# Devices")].splitlines()
    settings = [line[2:] for line in lines if line.startswith(PREFIXES)]
    uncommented = [line for line in settings if " = " in line]
    named = {line.partition(" = ")[0] for line in uncommented}
    assert named == {name for name in Profile.__dataclass_fields__ if name != "link"}
    whole = order(tmp_path, "\n".join(uncommented) + "\n" + text)
    assert Profile(**whole.headsets[0].profile) == Profile(), "the comments show what holds without them"
    assert all(name in text for name in STREAMS)


def test_the_example_of_a_second_headset_in_the_written_file_is_right(tmp_path: Path) -> None:
    text = template("192.168.1.20", "http://10.0.0.2:8080")
    example = text[text.index("# [hololens.hololens-b]") : text.index("[gopro]")]
    uncommented = "\n".join(line.removeprefix("# ") for line in example.splitlines())
    both = order(tmp_path, text.replace(example, uncommented + "\n")).headsets
    assert [headset.name for headset in both] == ["hololens", "hololens-b"]
    assert both[1].profile == {"link": "wired", "pv_exposure_us": 8000}
