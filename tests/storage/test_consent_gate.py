"""Consent: what may be done with a recording, asked in one place."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import kitchensync
from kitchensync.cli import main
from kitchensync.storage.consent import FREE, Purpose, Scope, give_consent, note_override, require_consent
from kitchensync.storage.errors import NotARecording, NotPermitted, Withdrawn
from kitchensync.storage.manifest import edit_manifest, read_manifest, write_json
from kitchensync.storage.recording import Recording, open_recording

MANIFEST = {
    "schema": "recording/1",
    "recording": "take",
    "state": "complete",
    "files": {},
    "streams": {},
    "devices": {},
    "consent": "none",
}


@pytest.fixture
def take(tmp_path: Path) -> Path:
    path = tmp_path / "take"
    path.mkdir()
    write_json(path / "recording.json", MANIFEST)
    return path


def test_without_consent_it_may_be_copied_and_looked_at_and_nothing_else(take: Path) -> None:
    for purpose in set(Purpose) - {Purpose.RELEASE_FACES_HIDDEN}:
        if purpose in FREE:
            require_consent(take, purpose)
        else:
            with pytest.raises(NotPermitted, match=f"nobody agreed to `{purpose}`; .*kitchensync consent"):
                require_consent(take, purpose)


def test_each_scope_opens_its_own_purpose(take: Path) -> None:
    for scope in Scope:
        give_consent(take, "form-1", [scope], by="op")
        allowed = {purpose for purpose in Purpose if _may(take, purpose)}
        assert allowed == FREE | {Purpose(scope)} - {Purpose.RELEASE_FACES_HIDDEN}
    assert [entry["scopes"] for entry in read_manifest(take)["consent_history"]] == [[one] for one in Scope]


def test_a_reference_without_scopes_lets_nothing_out(take: Path) -> None:
    with edit_manifest(take) as manifest:
        manifest["consent"] = "form-1"
    with pytest.raises(NotPermitted, match="form-1 does not hold `release_raw`"):
        require_consent(take, Purpose.RELEASE_RAW)


def test_after_a_withdrawal_nothing_may_be_done_and_nothing_entered(take: Path) -> None:
    give_consent(take, "form-1", Scope, by="op")
    with edit_manifest(take) as manifest:
        manifest["withdrawn"] = {"host_ns": 1}
    for purpose in Purpose:
        for words in ({}, {"without_consent": "we filmed ourselves"}):
            with pytest.raises(Withdrawn):
                require_consent(take, purpose, **words)
    with pytest.raises(Withdrawn):
        give_consent(take, "form-1", Scope, by="op")


def content_of(folder: Path) -> dict[str, tuple[str, int]]:
    """Return hash and time of each file below a folder, and the times of the folders."""
    found = {}
    for path in (folder, *folder.rglob("*")):
        digest = sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path)] = digest, path.stat().st_mtime_ns
    return found


def opened_for(purpose: Purpose) -> Callable[[Path], Any]:
    return lambda path: Recording(path, purpose=purpose, without_consent="we filmed ourselves")


POSSIBLE = sorted(set(Purpose) - {Purpose.RELEASE_FACES_HIDDEN})
OPENED: list[Callable[[Path], Any]] = [
    Recording,
    open_recording,
    kitchensync.open,
    *map(opened_for, POSSIBLE),
]


@pytest.mark.parametrize("number", range(len(OPENED)))
@pytest.mark.parametrize("consent", ["form-1", "none"])
def test_opening_writes_nothing(finished: Path, number: int, consent: str) -> None:
    with edit_manifest(finished) as manifest:
        manifest["consent"] = consent
    before = content_of(finished)
    with OPENED[number](finished):
        pass
    assert content_of(finished) == before


def test_a_reason_is_kept_once_and_only_where_nobody_agreed(take: Path) -> None:
    for _ in range(2):
        note_override(take, Purpose.RELEASE_RAW, "we filmed ourselves")
    note_override(take, Purpose.LOOK, "we filmed ourselves")
    note_override(take, Purpose.ANNOTATE, "")
    (kept,) = read_manifest(take)["consent_overrides"]
    assert (kept["purpose"], kept["reason"]) == ("release_raw", "we filmed ourselves")
    give_consent(take, "form-1", Scope, by="op")
    note_override(take, Purpose.RELEASE_RAW, "another")
    assert read_manifest(take)["consent_overrides"] == [kept]


def test_no_release_hides_faces_yet_and_says_so_by_name(take: Path) -> None:
    give_consent(take, "form-1", [Scope.RELEASE_FACES_HIDDEN], by="op")
    for words in ({}, {"without_consent": "we filmed ourselves"}):
        with pytest.raises(NotPermitted, match="`release_faces_hidden` is not possible: no release can hide"):
            require_consent(take, Purpose.RELEASE_FACES_HIDDEN, **words)
    with pytest.raises(NotPermitted, match="only `release_faces_hidden`, and no release can hide faces yet"):
        require_consent(take, Purpose.RELEASE_RAW)


def test_a_virtual_kitchen_needs_nobody_s_consent_and_no_withdrawal_is_overridden(take: Path) -> None:
    with edit_manifest(take) as manifest:
        manifest["virtual"] = True
    for purpose in set(Purpose) - {Purpose.RELEASE_FACES_HIDDEN}:
        assert require_consent(take, purpose)["consent"] == "none"
    with edit_manifest(take) as manifest:
        manifest["virtual"] = "yes"  # nobody writes that
    with pytest.raises(NotPermitted):
        require_consent(take, Purpose.ANNOTATE)
    with edit_manifest(take) as manifest:
        manifest |= {"virtual": True, "withdrawn": {"host_ns": 1}}
    for purpose in Purpose:
        with pytest.raises(Withdrawn):
            require_consent(take, purpose)


def test_a_manifest_that_cannot_be_read_permits_nothing(take: Path) -> None:
    (take / "recording.json").write_text("{")
    with pytest.raises(NotARecording):
        require_consent(take, Purpose.LOOK)


def test_the_command_enters_scopes_and_refuses_words_that_are_none(take: Path) -> None:
    command = ["consent", str(take), "--reference", "form-7", "--by", "op", "--scopes"]
    done = CliRunner().invoke(main, [*command, "annotate, release_raw", "--json"])
    assert json.loads(done.stdout)["consent_scopes"] == ["annotate", "release_raw"]
    assert read_manifest(take)["consent"] == "form-7"
    refused = CliRunner().invoke(main, [*command, "everything"])
    assert refused.exit_code == 2
    assert "'everything' is no scope; there are annotate, release_raw" in refused.stderr


@pytest.mark.parametrize("reference", ["none", " "])
def test_a_reference_that_stands_for_no_consent_is_refused(take: Path, reference: str) -> None:
    command = ["consent", str(take), "--reference", reference, "--by", "op", "--scopes", "release_raw"]
    before = (take / "recording.json").read_bytes()
    refused = CliRunner().invoke(main, command)
    assert (refused.exit_code, "stands for no consent" in refused.stderr) == (2, True)
    assert (take / "recording.json").read_bytes() == before


def _may(take: Path, purpose: Purpose) -> bool:
    try:
        require_consent(take, purpose)
    except NotPermitted:
        return False
    return True
