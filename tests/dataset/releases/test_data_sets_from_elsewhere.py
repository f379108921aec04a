"""Data sets and videos of others are data: none hangs a command, fills the memory or opens another file."""

from __future__ import annotations

import hashlib
import json
import os
from types import SimpleNamespace

import av
import numpy as np
import pytest
from click.testing import CliRunner

import kitchensync as ks
from kitchensync.cli import main
from kitchensync.dataset.checks import check_cards
from kitchensync.dataset.checks.release_faults import ReleaseFaults
from kitchensync.dataset.data_set_cards import download_data_set
from kitchensync.dataset.films.film_lanes import sound_levels
from kitchensync.storage.exports import arrays_file
from kitchensync.sync.errors import BadArrays
from kitchensync.task_graphs.errors import BadGraph
from kitchensync.task_graphs.formats.annotations import COMPLETE, ERRORS
from kitchensync.task_graphs.formats.graph_files import read_bytes


def test_a_pipe_where_an_annotation_file_is_expected_is_refused_at_once(tmp_path):
    (tmp_path / COMPLETE).parent.mkdir(parents=True)
    (tmp_path / COMPLETE).write_text("{}")
    os.mkfifo(tmp_path / ERRORS)
    answered = CliRunner().invoke(main, ["release", "stats", str(tmp_path)])
    assert answered.exit_code == 1
    assert "a pipe, not a file" in answered.stderr
    assert len(answered.stderr.splitlines()) == 1


def test_a_device_and_a_large_file_are_refused_before_reading(tmp_path):
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 40)
    for path, why in (("/dev/zero", "a device, not a file"), (tmp_path / "large", "at most 100 are read")):
        with pytest.raises(BadGraph, match=why):
            read_bytes(tmp_path / path, most_bytes=100)


def test_an_array_that_unpacks_to_far_more_than_its_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays_file, "ALWAYS_TAKEN", 1 << 10)
    np.savez_compressed(tmp_path / "bomb.npz", vinyl_ns=np.zeros(1 << 20), capture_ns=np.zeros(1 << 20))
    with pytest.raises(BadArrays, match="unpacks to"):
        ks.align(tmp_path / "bomb.npz", tmp_path / "bomb.npz")


def test_a_list_of_other_files_is_no_film(tmp_path):
    lines = ["#EXTM3U", "#EXT-X-TARGETDURATION:1", "#EXTINF:1,", "secret.wav", "#EXT-X-ENDLIST"]
    (tmp_path / "film.mp4").write_text("\n".join(lines) + "\n")
    with pytest.raises((av.FFmpegError, OSError)):
        sound_levels(tmp_path / "film.mp4", 1.0)


@pytest.mark.parametrize("name", ["/etc/hostname", "../secret", "link", 5, None, ["a"], "[" * 10])
def test_a_card_names_no_file_outside_of_its_data_set(tmp_path, name):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "link").symlink_to(secret)
    card = {"distribution": [{"contentUrl": name, "sha256": "0" * 64}]}
    (folder / check_cards.CROISSANT).write_text(json.dumps(card))
    checked = SimpleNamespace(folder=folder, found=ReleaseFaults())
    check_cards._croissant(checked, folder / check_cards.CROISSANT)
    (difference,) = checked.found.differences
    assert hashlib.sha256(b"secret").hexdigest() not in str(difference)


def test_a_download_writes_through_no_link(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "q").symlink_to(outside)
    said = download_data_set.get("http://127.0.0.1:9/", "q/b", "0" * 64, folder)
    assert "reached by a link" in said
    assert not list(outside.iterdir())
    (folder / "a").write_text("a file")
    assert "File exists" in download_data_set.get("http://127.0.0.1:9/", "a/b", "0" * 64, folder)
