"""Partial results of long work are resumed by the same work only, in a folder of its own."""

from __future__ import annotations

import pytest

from kitchensync.calibration.space.partial import Partial
from kitchensync.storage.options.outputs import OutputRefused


def test_the_same_work_is_resumed_and_other_work_starts_over(tmp_path):
    out = tmp_path / "look.mp4"
    first = Partial(out, {"of": 1})
    assert first.begin() == {}
    first.keep({"next": 7})
    assert Partial(out, {"of": 1}).begin() == {"next": 7}
    assert Partial(out, {"of": 2}).begin() == {}


def test_a_folder_of_somebody_else_is_never_removed(tmp_path):
    folder = tmp_path / "look.mp4.partial"
    folder.mkdir()
    (folder / "thesis.tex").write_text("mine")
    with pytest.raises(OutputRefused, match="not of this command"):
        Partial(tmp_path / "look.mp4", {}).begin()
    assert (folder / "thesis.tex").read_text() == "mine"
    (tmp_path / "sealed").mkdir()
    (tmp_path / "other.ply.partial").symlink_to(tmp_path / "sealed")
    with pytest.raises(OutputRefused):
        Partial(tmp_path / "other.ply", {}).begin()
