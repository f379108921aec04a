"""Each answer of a hostile camera ends within limits of time and size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kitchensync.sensors.errors import CameraError, DownloadFailed
from kitchensync.sensors.gopro.control import camera as camera_module
from kitchensync.sensors.gopro.control import download as download_module
from kitchensync.sensors.gopro.control.camera import GoProHttp
from kitchensync.sensors.gopro.control.camera_types import MediaFile
from kitchensync.sensors.gopro.control.download import download
from kitchensync.shell.untrusted_json import BadJson, parse_json, parse_object
from kitchensync.virtual_kitchen.gopro.hostile import HOSTILE, HostileCamera

LIMIT_S = 0.3


@pytest.fixture
def camera(request: pytest.FixtureRequest) -> Iterator[str]:
    with closing(HostileCamera(request.param)) as hostile:
        yield hostile.url


@pytest.mark.slow
@pytest.mark.parametrize("camera", HOSTILE, indirect=True, ids=str)
def test_a_harmful_answer_is_refused_in_one_line(
    camera: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download_module, "LEAST_IN_S", LIMIT_S)
    monkeypatch.setattr(camera_module, "RETRY_S", 0.01)
    with GoProHttp(camera, timeout_s=LIMIT_S) as gopro, pytest.raises(CameraError) as refused:
        gopro.state()
    assert str(refused.value).isprintable(), "nothing that steers a terminal"
    assert len(str(refused.value)) < 400
    file = MediaFile("100GOPRO", "GX010001.MP4", 1_000_000, None)
    with pytest.raises((DownloadFailed, CameraError)):
        download(camera, file, tmp_path / "film.MP4", read_timeout_s=LIMIT_S, back_off_s=0.0)
    assert not (tmp_path / "film.MP4").exists()


@pytest.mark.parametrize(
    "text", ["NaN", "-Infinity", "1e400", "1" * 30, "[" * 65, '{"a":' * 70, "\ud800", b"\xff", ""]
)
def test_json_beyond_its_bounds_is_refused(text: str | bytes) -> None:
    with pytest.raises(BadJson):
        parse_json(text)


def test_json_within_its_bounds_is_read() -> None:
    deep = "[" * 64 + '"[[[{{{"' + "]" * 64
    assert parse_json(deep) is not None
    assert parse_object('{"a": [1, 2.5, "\\u00e4[", null, true], "ns": 1795427049084053123}') == {
        "a": [1, 2.5, "ä[", None, True],
        "ns": 1795427049084053123,
    }
    with pytest.raises(BadJson, match="no JSON object"):
        parse_object("[]")
    with pytest.raises(BadJson, match="at most 10"):
        parse_json(" " * 11, most_bytes=10)
