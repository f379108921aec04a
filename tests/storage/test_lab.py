"""What leaves for a store: own ones of lab.toml without consent, others by consent or for a stated reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kitchensync.cli import main
from kitchensync.storage.errors import BadLabFile
from kitchensync.storage.lab import VARIABLE, Lab, lab_of
from kitchensync.storage.manifest import edit_manifest, read_manifest


@pytest.fixture
def not_agreed(finished: Path) -> Path:
    """A recording to whose release nobody agreed."""
    with edit_manifest(finished) as manifest:
        manifest["consent"], manifest["consent_scopes"] = "form-1", ["annotate"]
    return finished


def upload(recording: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["upload", str(recording), *words])


@pytest.mark.parametrize("below", ["", "/kitchen/2026"])
def test_a_store_of_the_laboratory_needs_no_consent(
    not_agreed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, below: str
) -> None:
    store = f"file://{tmp_path}/cloud"
    (not_agreed.parent / "lab.toml").write_text(f'stores = ["{store}/"]')
    assert upload(not_agreed, store + below).exit_code == 0
    assert (tmp_path / "cloud" / below.strip("/") / "take" / "recording.json").exists()
    refused = upload(not_agreed, f"file://{tmp_path}/cloud-of-others")
    assert (refused.exit_code, "lab.toml" in refused.stderr) == (1, True)
    assert upload(not_agreed, f"{store}/../others").exit_code == 1
    (tmp_path / "other.toml").write_text("stores = []")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "other.toml"))  # stands before the file in the folder
    assert upload(not_agreed, store).exit_code == 1
    assert not (tmp_path / "others").exists()
    assert not (tmp_path / "cloud-of-others").exists()


def test_a_group_that_is_none_is_named(not_agreed: Path) -> None:
    (not_agreed.parent / "lab.toml").write_text('group = "no-such-group"')
    done = CliRunner().invoke(main, ["verify", str(not_agreed)])
    assert done.exit_code == 1
    assert done.stderr.startswith(
        "kitchensync: group 'no-such-group' of lab.toml: this computer knows no group"
    )


def test_a_stated_reason_sends_it_and_is_kept(not_agreed: Path, tmp_path: Path) -> None:
    cloud = f"file://{tmp_path}/cloud"
    assert upload(not_agreed, cloud, "--without-consent", " ").exit_code == 2
    assert upload(not_agreed, cloud, "--without-consent", "we filmed ourselves").exit_code == 0
    for place in (not_agreed, tmp_path / "cloud" / "take"):
        (kept,) = read_manifest(place)["consent_overrides"]
        assert (kept["purpose"], kept["reason"]) == ("release_raw", "we filmed ourselves")


@pytest.mark.parametrize("text", ["stores = 3", "stor = []", "stores = [", "stores = [1]"])
def test_a_lab_file_that_cannot_be_read_is_refused_by_name(
    not_agreed: Path, tmp_path: Path, text: str
) -> None:
    (not_agreed.parent / "lab.toml").write_text(text)
    with pytest.raises(BadLabFile, match=r"lab\.toml: "):
        lab_of(not_agreed)
    assert upload(not_agreed, f"file://{tmp_path}/cloud").exit_code == 1
    assert not (tmp_path / "cloud").exists()


def test_a_store_is_owned_by_whole_parts_of_its_address() -> None:
    lab = Lab(stores=["s3://lab/kitchen"])
    assert lab.owns("s3://lab/kitchen")
    assert lab.owns("s3://lab/kitchen/a")
    assert not any(map(lab.owns, ["s3://lab", "s3://lab/kitchens", "s3://other/s3://lab/kitchen", ""]))


def test_a_lab_file_without_end_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "lab.toml").open("wb") as file:
        file.truncate(20 << 30)
    with pytest.raises(BadLabFile, match="larger than any lab file"):
        lab_of(tmp_path / "take")
