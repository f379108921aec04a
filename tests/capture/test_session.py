"""A recording that cannot be made is refused before anything is touched."""

from __future__ import annotations

import os

import pytest

from capture.errors import FolderNotWritable
from capture.order import RecordingRequest
from capture.session.session import record


@pytest.mark.parametrize("closed", ["data", "data/.kitchensync"])
def test_a_folder_of_another_user_is_refused_by_its_name(tmp_path, monkeypatch, closed):
    folder = tmp_path / closed
    folder.mkdir(parents=True)
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != folder and real(path, mode))
    with pytest.raises(FolderNotWritable, match=rf"{closed}: cannot write there \(no permission\)"):
        record(RecordingRequest("take", tmp_path / "data", [], {}), print)
    assert sorted(tmp_path.rglob("*")) == sorted({tmp_path / "data", folder})
