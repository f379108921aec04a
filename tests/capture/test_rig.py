"""Rig files: their content, refusals, and settings of single headsets."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kitchensync.capture.errors import BadRig
from kitchensync.capture.plan import RecordingRequest
from kitchensync.capture.rig.rig_file import no_options, order_from, template
from kitchensync.sensors.hololens.catalogue import DEFAULT_SET, STREAMS
from kitchensync.sensors.hololens.profile import Profile

PREFIXES = ("# pv_", "# vlc_", "# depth_", "# microphone", "# eye_", "# extended_")
SCHEMA = json.loads((Path(__file__).parents[2] / "docs/reference/rig.schema.json").read_text())
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
    return order_from("take", no_options() | {"rig": rig, "data": folder} | options)


def test_each_headset_has_the_settings_of_the_rig_and_its_own(tmp_path: Path) -> None:
    first, second = order(tmp_path, TWO).headsets
    assert (first.name, first.host, second.name, second.host) == ("a", "127.0.0.1", "b", "127.0.0.2")
    assert Profile(**first.profile) == Profile(link="wired", pv_hz=15)
    assert Profile(**second.profile) == Profile(link="wifi", pv_hz=15, pv_width=1280, pv_height=720)
    assert STREAMS["depth_ahat"].describe(Profile(**first.profile))["codec"] == "raw"
    assert STREAMS["depth_ahat"].describe(Profile(**second.profile))["codec"] == "h265"


def test_command_line_options_apply_to_all_headsets(tmp_path: Path) -> None:
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
def test_wrong_headset_tables_are_refused(tmp_path: Path, table: str, named: str) -> None:
    text = '[hololens]\na = "127.0.0.1"\n' + table if table.startswith("[hololens.b]") else table
    with pytest.raises(BadRig) as refused:
        order(tmp_path, text)
    assert named in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_written_rig_file_names_every_setting_and_can_be_read(tmp_path: Path) -> None:
    text = template("192.168.1.20", "http://10.0.0.2:8080")
    written = order(tmp_path, text)
    assert written.headsets[0].streams == list(DEFAULT_SET)
    assert written.headsets[0].profile == {"link": "wifi"}
    lines = text[: text.index("# Devices")].splitlines()
    settings = [line[2:] for line in lines if line.startswith(PREFIXES)]
    uncommented = [line for line in settings if " = " in line]
    named = {line.partition(" = ")[0] for line in uncommented}
    assert named == {name for name in Profile.model_fields if name != "link"}
    whole = order(tmp_path, "\n".join(uncommented) + "\n" + text)
    assert Profile(**whole.headsets[0].profile) == Profile(), "the comments show the default values"
    assert all(name in text for name in STREAMS)


def test_the_example_of_a_second_headset_in_the_rig_file_is_valid(tmp_path: Path) -> None:
    text = template("192.168.1.20", "http://10.0.0.2:8080")
    example = text[text.index("# [hololens.hololens-b]") : text.index("[gopro]")]
    uncommented = "\n".join(line.removeprefix("# ") for line in example.splitlines())
    both = order(tmp_path, text.replace(example, uncommented + "\n")).headsets
    assert [headset.name for headset in both] == ["hololens", "hololens-b"]
    assert both[1].profile == {"link": "wired", "pv_exposure_us": 8000}


WRONG = {
    'holelens = {}\nlinks = "wifi"': "unknown setting holelens, links; known: camera, depth_ahat_codec, ",
    "[camera]\nzoom = 2": "unknown setting camera.zoom; known: anti_flicker, fps, gps, lens, resolution",
    '[camera]\nlens = "round"': "camera.lens should be 'wide', 'linear', 'narrow' or 'superview', not 'round'",
    '[camera]\ngps = "off"': "camera.gps should be a valid boolean, not 'off'",
    'gyroscope_unit = "rpm"': "gyroscope_unit should be 'auto', 'deg_per_s' or 'rad_per_s', not 'rpm'",
    "linger_ms = 51": "linger_ms should be less than or equal to 50, not 51",
    "linger_ms = true": "linger_ms should be a valid integer, not True",
    'streams = "pv"': "streams should be a valid list, not 'pv'",
    'microphone = "mp3"': "microphone should be 'aac', 'pcm' or 'array', not 'mp3'",
    "eye_tracking_hz = 45": "eye_tracking_hz should be 30, 60 or 90, not 45",
    "pv_focus_mm = 100": "pv_focus_mm should be 0 (automatic) or 170 to 10000, not 100",
    'pv_width = "wide"': "pv_width should be a valid integer, not 'wide'",
    'hololens = "127.0.0.1"': "hololens is of the wrong kind; write [hololens] and below it lines such as hololens",
    "[gopro]\ngopro = 8080": 'gopro.gopro is of the wrong kind; write [gopro] and below it lines such as gopro = "',
    '[hololens.b]\nlink = "wifi"': "hololens.b.address is missing; write [hololens] and below it lines such as",
    "[sensor]\nscale = 1": 'sensor.scale is of the wrong kind; write [sensor.NAME] and below it kind = "..."',
    '[sensor.scale]\naddress = "a:1"': "sensor.scale.kind is missing; write [sensor.NAME]",
}


@pytest.mark.slow
@pytest.mark.parametrize("text", WRONG)
def test_one_line_names_the_key_and_what_it_may_be_and_the_published_schema_refuses_the_same(
    tmp_path: Path, text: str
) -> None:
    with pytest.raises(BadRig) as refused:
        order(tmp_path, text)
    assert str(refused.value).startswith(f"{tmp_path / 'rig.toml'}: {WRONG[text]}")
    assert "\n" not in str(refused.value)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tomllib.loads(text), SCHEMA)


@pytest.mark.parametrize("text", ["linger_ms = 1\nlinger_ms = 2\n", '[gopro]\na = "b"\n[gopro]\na = "c"'])
def test_a_key_that_is_written_twice_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadRig, match=r"rig.toml: cannot be read \(.*line \d"):
        order(tmp_path, text)


def test_the_published_schema_accepts_what_the_program_accepts() -> None:
    jsonschema.validate(tomllib.loads(TWO), SCHEMA)
    jsonschema.validate(tomllib.loads(template("192.168.1.20", "http://10.0.0.2:8080")), SCHEMA)
    jsonschema.validate({"pv_focus_mm": 170, "sensor": {"scale": {"kind": "json_lines", "rate": 5}}}, SCHEMA)
