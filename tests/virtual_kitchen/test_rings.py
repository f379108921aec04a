"""Rings of packets: as many bits as were asked for, and payloads that no client before has changed."""

from __future__ import annotations

from pathlib import Path

import av
import pytest

from kitchensync.virtual_kitchen.headset.cameras import VLC
from kitchensync.virtual_kitchen.headset.client_configuration import (
    RequestedEncoding,
    VideoEncoding,
    VideoFormat,
)
from kitchensync.virtual_kitchen.headset.device import HeadsetState
from kitchensync.virtual_kitchen.headset.stream import Feed
from kitchensync.virtual_kitchen.headset.stream_port import RingFeed
from kitchensync.virtual_kitchen.headset.streams.ahat_stream import AhatConfiguration, AhatFeed, GroupShelf
from kitchensync.virtual_kitchen.headset.streams.pv_stream import PvConfiguration, PvFeed
from kitchensync.virtual_kitchen.headset.streams.vlc_stream import VlcConfiguration, VlcFeed
from kitchensync.virtual_kitchen.kitchen import Kitchen
from kitchensync.virtual_kitchen.truth import Truth
from kitchensync.virtual_kitchen.world.motion import simulated_motion

pytestmark = pytest.mark.slow

H264, H265 = RequestedEncoding.H264_MAIN, RequestedEncoding.H265_MAIN


@pytest.fixture(scope="module")
def headset(tmp_path_factory: pytest.TempPathFactory) -> HeadsetState:
    folder = tmp_path_factory.mktemp("sim")
    return HeadsetState(Kitchen(3, simulated_motion(3), Truth(folder, 3), 1.0), has_rings=True)


def grey(headset: HeadsetState, gop: int = 15, bits: int = 737_280) -> VlcFeed:
    return VlcFeed(headset, VLC[1], VlcConfiguration(True, 1, VideoEncoding(H265, bits), gop, 0))


def front(headset: HeadsetState, profile: RequestedEncoding, bits: int, size: VideoFormat) -> PvFeed:
    return PvFeed(headset, PvConfiguration(False, size, 1, VideoEncoding(profile, bits), 30))


def depth(headset: HeadsetState) -> AhatFeed:
    shelf = GroupShelf(3, at_requested_rate=headset.has_rings)
    return AhatFeed(headset, AhatConfiguration(False, 1, VideoEncoding(H265, 15_099_488), 45), shelf)


def bits_per_s(feed: Feed, pictures: int) -> float:
    seconds = feed.due_s(pictures) - feed.due_s(0)
    return 8 * sum(len(feed.packet(k).payload) for k in range(pictures)) / seconds


def test_pictures_in_rings_fill_the_bit_rate_that_was_asked_for(headset: HeadsetState) -> None:
    small = VideoFormat(640, 360, 30)
    assert bits_per_s(front(headset, H265, 552_960, small), 30) == pytest.approx(552_960, rel=0.25)
    assert bits_per_s(front(headset, H264, 1_105_920, small), 30) == pytest.approx(1_105_920, rel=0.25)
    assert bits_per_s(grey(headset, gop=30), 30) == pytest.approx(737_280, rel=0.25)
    assert bits_per_s(depth(headset), 45) == pytest.approx(15_099_488, rel=0.25)


def test_a_full_hd_ring_is_several_times_larger(headset: HeadsetState) -> None:
    large = front(headset, H264, 9_953_280, VideoFormat(1920, 1080, 30))
    assert bits_per_s(large, 10) > 6e6


def test_a_group_left_half_made_does_not_show_in_what_later_clients_get(headset: HeadsetState) -> None:
    whole = RingFeed(grey(headset), made_first=True)
    expected = [whole.packet(k).payload for k in range(120)]
    ring = RingFeed(grey(headset), made_first=False)
    left = [ring.packet(k).payload for k in range(15, 19)]  # a client that goes in the middle of a group
    assert left == expected[15:19]
    assert [ring.packet(k).payload for k in range(30, 120)] == expected[30:]
    assert len(set(expected)) == 30, "a second"


def test_video_of_a_ring_decodes_where_pictures_are_left_out(headset: HeadsetState) -> None:
    ring = RingFeed(depth(headset), made_first=True)
    sent = [*range(20), *range(27, 60, 9), *range(60, 140)]
    decoder = av.CodecContext.create("hevc", "r")
    units = [av.Packet(ring.packet(k).payload[8:-8]) for k in sent]
    pictures = [picture for unit in [*units, None] for picture in decoder.decode(unit)]
    assert len(pictures) == len(sent)
    plain = RingFeed(depth(headset), made_first=True)
    assert [ring.packet(k) for k in range(180, 225)] == [plain.packet(k) for k in range(180, 225)]


def test_a_ring_from_the_store_is_the_ring_that_was_made(headset: HeadsetState, tmp_path: Path) -> None:
    made, loaded = (RingFeed(grey(headset), made_first=False) for _ in range(2))
    made.save(tmp_path / "ring.npz")
    loaded.load(tmp_path / "ring.npz")
    assert [loaded.packet(k) for k in (0, 1, 29, 30, 59, 60, 61, 200)] == [
        made.packet(k) for k in (0, 1, 29, 30, 59, 60, 61, 200)
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["ring.npz"]
