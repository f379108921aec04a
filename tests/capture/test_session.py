"""An impossible recording is refused before anything is changed."""

from __future__ import annotations

import os

import pytest

from kitchensync.capture.errors import FolderNotWritable, StreamsMissing
from kitchensync.capture.plan import Plan, RecordingRequest
from kitchensync.capture.session import recording_session
from kitchensync.capture.session.first_manifest import first_manifest
from kitchensync.capture.session.recording_session import record
from kitchensync.storage.consent import Purpose, why_not
from kitchensync.storage.errors import BadInstallation
from kitchensync.storage.installation.key import own_key


@pytest.mark.parametrize("closed", ["data", "data/.kitchensync"])
def test_a_folder_of_another_user_is_refused_and_named(tmp_path, monkeypatch, closed):
    folder = tmp_path / closed
    folder.mkdir(parents=True)
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != folder and real(path, mode))
    with pytest.raises(FolderNotWritable, match=rf"{closed}: cannot write there \(no permission\)"):
        record(RecordingRequest("take", tmp_path / "data", [], {}), print)
    assert sorted(tmp_path.rglob("*")) == sorted({tmp_path / "data", folder})


@pytest.mark.parametrize(
    ("devices", "virtual"),
    [
        ({}, False),
        ({"hololens": {"virtual": True}}, True),
        ({"hololens": {"virtual": True}, "gopro": {"virtual": True}}, True),
        ({"hololens": {"virtual": True}, "gopro": {}}, False),
        ({"hololens": {}, "gopro": {"virtual": True}}, False),
    ],
)
def test_a_recording_is_virtual_if_every_device_is(tmp_path, devices, virtual):
    """One real device is enough: a person may be recorded."""
    order = RecordingRequest("take", tmp_path, [], {})
    plan = Plan("take", "u", str(tmp_path), "", "", "", [])
    manifest = first_manifest(order, plan, devices)
    assert manifest.get("virtual", "is not said") == (True if virtual else "is not said")
    assert (why_not(manifest, Purpose.RELEASE_RAW) == "") is virtual


def test_recording_beside_the_key_of_another_installation_does_not_adopt_it(
    tmp_path, short_folder, monkeypatch
):
    """The key may have come with received recordings, and with a list of data to destroy."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short_folder))
    (tmp_path / "_app").mkdir()
    (tmp_path / "_app" / "app.key").write_bytes(bytes(range(32)))

    def begun(*_: object, **__: object) -> None:
        raise StreamsMissing({}, 0)

    monkeypatch.setattr(recording_session, "Supervisor", begun)
    with pytest.raises(StreamsMissing):
        record(RecordingRequest("take", tmp_path, [], {}), lambda _: None)
    with pytest.raises(BadInstallation, match="app --mine"):
        own_key(tmp_path / "_app")
