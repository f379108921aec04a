"""A plug-in may call its streams as the headset does: nothing takes them for the headset's."""

from __future__ import annotations

import json

import h5py
import numpy as np
import pytest

from kitchensync.sensors.hololens.catalogue import STREAMS
from kitchensync.storage.chunks.chunk_writer import Packet, seal
from kitchensync.storage.manifest import write_json
from kitchensync.storage.recording import open_recording
from kitchensync.storage.verify import verify

RECORD = [["grams", "<f4"], ["still", "|u1"]]
PAYLOAD = np.array([(1.5, 1)], [tuple(field) for field in RECORD]).tobytes()
FORM = {"codec": "weights", "record": RECORD}


@pytest.fixture
def take(tmp_path):
    """Every name that a stream of the headset has, from a plug-in, and the headset's gyroscope after them."""
    recording, streams = tmp_path / "take", {f"watch/{name}": {"format": FORM} for name in STREAMS}
    for name in streams:
        folder = recording / name
        folder.mkdir(parents=True)
        packets = [Packet(seq, 1, 10**6 * seq, 10**8 * seq, 1, PAYLOAD, b"") for seq in range(20)]
        seal(folder, 1, packets, {"stream": name, "format": json.dumps(FORM)})
    devices = {"watch": {"kind": "plugin", "sensor": "watch"}, "hololens": {"kind": "hololens"}}
    manifest = {"schema": "recording/1", "recording": "take", "state": "complete", "files": {}}
    about = {"format": {"module": "kitchensync.sensors.hololens.streams.gyroscope"}}
    write_json(
        recording / "recording.json",
        manifest | {"streams": {**streams, "hololens/gyroscope": about}, "devices": devices},
    )
    return recording


def test_a_plug_ins_stream_is_no_headsets_whatever_its_name(take):
    with open_recording(take) as recording:
        assert {name for name in recording.streams if recording.sensor(name)} == {"hololens/gyroscope"}
        assert {recording.si_scale(f"watch/{name}") for name in STREAMS} == {None}
        for name in STREAMS:
            (first, *_), stream = (
                dict(recording[f"watch/{name}"].decoded()).values(),
                recording[f"watch/{name}"],
            )
            assert (first["grams"].item(), stream.bad) == (1.5, {})


def test_its_chunks_are_laid_out_by_its_own_record(take):
    for name in STREAMS:
        with h5py.File(take / "watch" / name / "000001.h5") as file:
            assert file.attrs["layout"].decode() == "records", name
            assert file["records"].dtype.names == ("grams", "still"), name


@pytest.mark.slow
def test_nothing_of_it_is_judged_as_the_headsets(take):
    answer = verify(take, deep=True)
    watch = {name: facts for name, facts in answer["streams"].items() if name.startswith("watch/")}
    assert len(watch) == len(STREAMS)
    assert [
        name for name, facts in watch.items() if {"decoded", "loudest_dbfs", "tracked"} & set(facts)
    ] == []
    assert [why for why in answer["reasons"] if "decode" in why or "silent" in why] == []
