"""Two independent readers agree with this one, where they are known to be correct."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from films import film

from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.sensors.gopro.mp4.join import join

gpmf_parser = pytest.importorskip(
    "py_gpmf_parser.gopro_telemetry_extractor", reason="py-gpmf-parser is not here"
)
telemetry_parser = pytest.importorskip("telemetry_parser", reason="telemetry-parser is not here")


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("joined")
    video = film(folder / "card", 240, 90)
    return join([chapter.path for chapter in video.chapters], folder / "one.MP4").path


def test_gpmf_parser_reads_the_same(joined: Path) -> None:
    extractor = gpmf_parser.GoProTelemetryExtractor(str(joined))
    extractor.open_source()
    try:
        values, times = extractor.extract_data("GYRO")
    finally:
        extractor.close_source()
    ours = open_media(joined).samples("GYRO")
    np.testing.assert_allclose(values, ours.values, atol=1e-6)
    # Its times are spread evenly over each payload: right to a sample or two, no more.
    assert abs(times[-1] - ours.t_s[-1]) < 0.02


def test_telemetry_parser_reads_the_same(joined: Path) -> None:
    parser = telemetry_parser.Parser(str(joined))
    assert parser.camera == "GoPro"
    assert parser.model == "HERO11 Black"
    blocks = [block["Gyroscope"] for block in parser.telemetry() if "Gyroscope" in block]
    counts = [
        len(block["Data"]) if isinstance(block, dict) and "Data" in block else len(block) for block in blocks
    ]
    assert sum(counts) == len(open_media(joined).gyroscope().t_s)
