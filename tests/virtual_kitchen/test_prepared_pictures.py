"""`simulate --prepare`: the usual frames and sound are encoded before anybody comes, and are the same."""

from __future__ import annotations

import socket

import numpy as np
import pytest
from click.testing import CliRunner

from kitchensync.cli import main
from kitchensync.sensors.hololens import constants as c
from kitchensync.sensors.hololens import wire
from kitchensync.sensors.hololens.encoding import AUDIO
from kitchensync.sensors.hololens.streams import depth_ahat, pv
from kitchensync.virtual_kitchen.gopro.files.film_grid import GROUP, FilmGrid, GridView
from kitchensync.virtual_kitchen.gopro.files.sensors import CameraMount
from kitchensync.virtual_kitchen.headset.client_configuration import ConfigurationReader
from kitchensync.virtual_kitchen.headset.device import HeadsetState
from kitchensync.virtual_kitchen.headset.streams import ahat_stream, microphone_stream, pv_stream
from kitchensync.virtual_kitchen.kitchen import Kitchen
from kitchensync.virtual_kitchen.truth import Truth
from kitchensync.virtual_kitchen.world.clocks import camera_clock
from kitchensync.virtual_kitchen.world.motion import simulated_motion

plain_picture = FilmGrid.picture


@pytest.fixture
def headsets(tmp_path):
    """Two headsets of one kitchen with frame counters."""
    kitchen = Kitchen(3, simulated_motion(3), Truth(tmp_path, 3), 1.0)
    kitchen.frame_counter = True
    return HeadsetState(kitchen, end_world_s=1.5), HeadsetState(kitchen, end_world_s=1.5)


def asked_by_our_client(stream, configuration: bytes):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(configuration)
        return stream.configure(ConfigurationReader(theirs))


@pytest.mark.slow
def test_prepared_pictures_are_those_that_are_encoded_on_demand(headsets, monkeypatch):
    prepared, plain = headsets
    feed = pv_stream.PvFeed(plain, pv_stream.DEFAULT)
    wanted = [feed.packet(k) for k in range(30, 60)]
    pv_stream.prepare(prepared, 1.5)
    monkeypatch.setattr(prepared.kitchen.scene, "render_i420", None)  # nothing is rendered from here on
    feed = pv_stream.PvFeed(prepared, pv_stream.DEFAULT)
    assert [feed.packet(k) for k in range(30, 60)] == wanted


@pytest.mark.slow
def test_a_film_is_the_same_whether_its_groups_were_prepared_or_not(tmp_path, monkeypatch):
    kitchen = Kitchen(3, simulated_motion(3), Truth(tmp_path, 3), 1.0)
    mount, crystal = CameraMount.of_seed(3), camera_clock(3)
    prepared, plain = FilmGrid(kitchen, mount, crystal), FilmGrid(kitchen, mount, crystal)
    prepared.prepare(4.0)
    first = prepared.first_at(0.55)
    assert prepared.world_s(first) - 0.55 < 1001 / 30000

    def film(grid, frames):
        view = GridView(grid, first)
        return [one for number in range(frames) for one in view.frame(number, np.empty(0))], view

    samples, view = film(plain, 95)
    samples += view.flush()
    assert len(samples) == 95
    ahead = GROUP - first % GROUP
    assert [number for number, (_, is_key) in enumerate(samples) if is_key] == [0, *range(ahead, 95, GROUP)]
    rendered = []
    monkeypatch.setattr(
        FilmGrid, "picture", lambda grid, number: rendered.append(number) or plain_picture(grid, number)
    )
    again, view = film(prepared, 95)
    assert [*again, *view.flush()] == samples
    assert rendered == list(range(first, first + ahead))  # the group that had begun before


@pytest.mark.slow
def test_depth_groups_are_there_for_each_start_of_a_client(headsets, monkeypatch):
    prepared, plain = headsets
    wanted = [
        ahat_stream.AhatFeed(plain, ahat_stream.DEFAULT, ahat_stream.GroupShelf(3)).packet(k)
        for k in (45, 90)
    ]
    stream = ahat_stream.AhatStream(prepared)
    stream.prepare()
    monkeypatch.setattr(ahat_stream, "PictureGroup", None)  # nothing is encoded from here on
    feed = asked_by_our_client(stream, depth_ahat.configuration(c.VideoProfile.H265_MAIN))
    assert [feed.packet(k) for k in (45, 90)] == wanted


def test_sound_is_prepared_for_our_client_and_is_the_same(headsets, monkeypatch):
    prepared, plain = headsets
    wanted = [microphone_stream.AacFeed(plain, 24_000).packet(k) for k in (0, 46, 47, 69)]
    microphone_stream.prepare(prepared, 1.5)
    monkeypatch.setattr(microphone_stream, "av", None)  # nothing is encoded from here on
    stream = microphone_stream.MicrophoneStream(prepared)
    feed = asked_by_our_client(stream, wire.audio_encoding(*AUDIO["aac"]))
    assert [feed.packet(k) for k in (0, 46, 47, 69)] == wanted


@pytest.mark.slow
def test_what_is_prepared_is_what_our_client_asks_for(headsets, monkeypatch):
    headset, _ = headsets
    headset.camera_on = True
    headset.prepared_pv[pv_stream.DEFAULT] = {0: b"prepared"}
    stream = pv_stream.PvStream(headset)
    feed = asked_by_our_client(stream, pv.configuration(640, 360, 30, c.VideoProfile.H265_MAIN))
    assert feed.packet(0).payload.startswith(b"prepared")
    other = asked_by_our_client(stream, pv.configuration(424, 240, 30, c.VideoProfile.H265_MAIN))
    assert not other.packet(0).payload.startswith(b"prepared")


@pytest.mark.parametrize("words", [(), ("--seconds", "5", "--rings"), ("--seconds", "5", "--scene", "board")])
def test_what_cannot_be_prepared_is_refused_in_one_line(tmp_path, words):
    asked = ["simulate", "--seed", "1", "--out", str(tmp_path), "--prepare", *words]
    done = CliRunner().invoke(main, asked)
    assert done.exit_code == 1
    assert "--prepare" in done.stderr
    assert len(done.stderr.splitlines()) == 1
