"""One cooked, filmed and synchronized recording for all exports."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cooked_recording import write_cooked
from hand_shape import a_hand
from scipy.spatial.transform import Rotation
from small_recordings import seal_stream, write_constants

import kitchensync as ks
from kitchensync.sensors.hololens.streams import spatial_input
from kitchensync.storage.manifest import edit_manifest


@pytest.fixture(scope="session")
def cooked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of which nothing may be changed."""
    root = tmp_path_factory.mktemp("cooked")
    write_cooked(root)
    with edit_manifest(root / "take1") as manifest:
        manifest["consent_scopes"] = ["release_raw"]
    return root / "take1"


@pytest.fixture(scope="session")
def with_hands(cooked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recording of all exports with both hands before the head, and the front camera's constants."""
    take = Path(shutil.copytree(cooked, tmp_path_factory.mktemp("with_hands") / "take1"))
    with ks.open(cooked) as rec:
        stored = rec.stored["hololens/spatial_input"]
        ticks = stored.index["device_ticks"].tolist()
        records = [spatial_input.decode(stored.payload(row)).copy() for row in range(len(stored))]
    for number, record in enumerate(records):
        record["valid"] |= spatial_input.LEFT_HAND | spatial_input.RIGHT_HAND
        turn = Rotation.from_euler("xyz", [3.0, number / 100, 0.2]).as_matrix()
        for side, across in (("left", -0.2), ("right", 0.2)):
            place = record["head_position"] + 0.4 * record["head_forward"] + [across, -0.2, 0]
            record[f"{side}_hand"]["position"] = a_hand(is_left=side == "left")[0] @ turn.T + place
    shutil.rmtree(take / "hololens" / "spatial_input")
    packets = [(at, spatial_input.encode(record)) for at, record in zip(ticks, records, strict=True)]
    seal_stream(take, "hololens/spatial_input", packets)
    write_constants(take, "pv")
    return take
