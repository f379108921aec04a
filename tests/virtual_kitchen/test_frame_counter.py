"""Every camera picture of `simulate --frame-counter` says which one it is, through its codec and smaller."""

from __future__ import annotations

import io
import json
from pathlib import Path

import av
import numpy as np
import pytest
from numbered_pictures import luma_of, number_in

from kitchensync.virtual_kitchen.errors import KitchenError
from kitchensync.virtual_kitchen.gopro.files.models import MODELS, FileIds
from kitchensync.virtual_kitchen.gopro.files.recorder import ClipFile, WallTimes
from kitchensync.virtual_kitchen.gopro.files.sensors import Timeline
from kitchensync.virtual_kitchen.headset.cameras import VLC
from kitchensync.virtual_kitchen.headset.client_configuration import (
    RequestedEncoding,
    VideoEncoding,
    VideoFormat,
)
from kitchensync.virtual_kitchen.headset.device import HeadsetState
from kitchensync.virtual_kitchen.headset.streams.pv_stream import PvConfiguration, PvFeed
from kitchensync.virtual_kitchen.headset.streams.vlc_stream import VlcConfiguration, VlcFeed
from kitchensync.virtual_kitchen.kitchen import Kitchen
from kitchensync.virtual_kitchen.simulation import Options, run
from kitchensync.virtual_kitchen.truth import Truth
from kitchensync.virtual_kitchen.world import frame_counter
from kitchensync.virtual_kitchen.world.motion import simulated_motion

H265 = VideoEncoding(RequestedEncoding.H265_MAIN, 640 * 360 * 30 * 12 // 150)


@pytest.fixture
def kitchen(tmp_path: Path) -> Kitchen:
    kitchen = Kitchen(3, simulated_motion(3), Truth(tmp_path, 3))
    kitchen.frame_counter = True
    return kitchen


def shown(annex_b: bytes, form: str) -> list[int | None]:
    with av.open(io.BytesIO(annex_b), format=form) as film:
        return [number_in(luma_of(picture)) for picture in film.decode(video=0)]


@pytest.mark.slow
def test_the_headset_s_pictures_show_the_number_of_their_packet(kitchen: Kitchen) -> None:
    headset = HeadsetState(kitchen)
    numbers = [0, 1, 2, 255, 256, 70_001, 70_002]
    pv = PvFeed(headset, PvConfiguration(False, VideoFormat(640, 360, 30), 1, H265, 1))
    assert shown(b"".join(pv.packet(k).payload[:-80] for k in numbers), "hevc") == numbers
    grey = VlcFeed(headset, VLC[0], VlcConfiguration(False, 1, H265, 1, 0))
    assert shown(b"".join(grey.packet(k).payload[:-24] for k in numbers), "hevc") == numbers


@pytest.mark.slow
def test_the_camera_s_pictures_show_their_number_in_the_recording_in_its_later_chapters_too(
    kitchen: Kitchen, tmp_path: Path
) -> None:
    from kitchensync.virtual_kitchen.gopro.files.chapters import ChapterRule

    film = ClipFile(
        tmp_path / "GX010001.MP4", kitchen, Timeline(kitchen.camera_clock, 0.0),
        FileIds(MODELS["hero12"], 3, 1_750_000_000, 0), WallTimes(1_750_000_000, 1_750_000_000.0),
        rule=ChapterRule(frames=30),
    )  # fmt: skip
    for _ in range(70):
        film.add_frame()
    film.finish()
    numbers: list[int | None] = []
    for chapter in ("GX010001.MP4", "GX020001.MP4", "GX030001.MP4"):
        with av.open(str(tmp_path / chapter)) as source:
            numbers += [number_in(luma_of(picture)) for picture in source.decode(video=0)]
    assert numbers == list(range(70))


def test_nothing_is_read_where_no_number_is_drawn() -> None:
    picture = np.full((360, 640), 90, np.uint8)
    assert number_in(picture) is None
    frame_counter.draw_grey(picture, 123_456)
    assert number_in(picture) == 123_456


@pytest.mark.slow
def test_without_the_option_no_picture_changes(kitchen: Kitchen) -> None:
    kitchen.frame_counter = False
    pv = PvFeed(HeadsetState(kitchen), PvConfiguration(False, VideoFormat(640, 360, 30), 1, H265, 1))
    assert shown(pv.packet(5).payload[:-80], "hevc") == [None]


@pytest.mark.parametrize("more", [{"rings": True}, {"speed": 0.0}, {"scene": "board"}, {"replay": "x.MP4"}])
def test_pictures_that_repeat_cannot_be_numbered(tmp_path: Path, more: dict[str, object]) -> None:
    with pytest.raises(KitchenError, match="--frame-counter"):
        run(Options(1, tmp_path, frame_counter=True, **more))  # type: ignore[arg-type]


def test_the_truth_says_how_to_read_it() -> None:
    assert json.loads(json.dumps(frame_counter.ABOUT))["cells"].startswith("white, black, 24 bits")
