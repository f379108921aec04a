"""Uploads to a real S3 server on loopback; without the extra the command says what to install."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from processes import COMMAND
from s3_server import s3_server

from kitchensync.cli import main
from kitchensync.storage.commands.storage import upload as upload_command
from kitchensync.storage.copies.cloud_store import CloudStore
from kitchensync.storage.copies.copy_log import read_copies
from kitchensync.storage.errors import CloudRefused, CopyDiffers, NotFinished, PlaceTaken, SecretInAddress
from kitchensync.storage.manifest import edit_manifest
from kitchensync.storage.move import upload as upload_module
from kitchensync.storage.move.upload import upload
from kitchensync.storage.verify import verify

# Libraries of others: their clients leave the closing of sockets to the garbage collector.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[None]:
    """An S3 server in a process of its own, and the environment that leads to it."""
    with s3_server(tmp_path_factory.mktemp("moto")):
        yield


@pytest.fixture
def bucket(server, request) -> Iterator[str]:
    """An empty bucket."""
    import s3fs

    name = f"lab-{abs(hash(request.node.name))}"
    s3fs.S3FileSystem(skip_instance_cache=True).mkdir(name)
    yield f"s3://{name}/kitchen"
    s3fs.S3FileSystem.clear_instance_cache()


def fetch(url: str, target: Path) -> Path:
    """Bring a recording back from the store."""
    import s3fs

    s3fs.S3FileSystem(skip_instance_cache=True).get(f"{url}/take", str(target), recursive=True)
    return target


def test_a_recording_comes_back_from_the_store_as_it_was(finished, bucket, tmp_path):
    seen = []
    done = upload(finished, bucket, lambda *progress: seen.append(progress))
    assert (done.sent, done.files) == (9, 9)
    assert seen[-1][0] == "recording.json"
    assert (
        seen[-1][1]
        == seen[-1][2]
        == sum(p.stat().st_size for p in finished.rglob("*") if p.is_file())
        - ((finished / "copies.jsonl").stat().st_size)
    )
    assert verify(fetch(bucket, tmp_path / "back"))["status"] == "PASS"
    assert upload(finished, bucket).sent == 0


def test_an_interrupted_upload_goes_on(finished, bucket, tmp_path, monkeypatch):
    real, sent = upload_module._send, []

    def dying(*arguments):
        if len(sent) == 3:
            raise ConnectionError("the line is cut")
        sent.append(1)
        real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(upload_module, "_send", dying)
        with pytest.raises(CloudRefused, match="the line is cut"):
            upload(finished, bucket)
    assert [line.kind for line in read_copies(finished)] == ["begun", *["copied"] * 3]
    done = upload(finished, bucket)
    assert (done.sent, done.files) == (6, 9)
    assert verify(fetch(bucket, tmp_path / "back"))["status"] == "PASS"


def test_an_upload_that_is_killed_goes_on(finished, bucket, tmp_path):
    process = subprocess.Popen([COMMAND, "upload", str(finished), bucket], stdout=subprocess.DEVNULL)
    waiter = threading.Event()
    while len(read_copies(finished)) < 5:
        assert process.poll() is None, "it ended before it could be killed"
        waiter.wait(0.001)
    process.kill()
    process.wait()
    known = len(read_copies(finished)) - 1
    done = upload(finished, bucket)
    assert (done.sent, done.files) == (9 - known, 9)
    assert verify(fetch(bucket, tmp_path / "back"))["status"] == "PASS"


def test_a_store_that_gives_back_something_else_is_caught(finished, bucket, monkeypatch):
    import s3fs

    real = s3fs.core.S3File.read

    def lying(self, *arguments):
        content = real(self, *arguments)
        return content[:-1] + b"?" if content and self.path.endswith("000002.h5") else content

    monkeypatch.setattr(s3fs.core.S3File, "read", lying)
    with pytest.raises(CopyDiffers, match="000002.h5"):
        upload(finished, bucket)
    assert not any("000002" in line.file for line in read_copies(finished))


def test_the_command_prints_one_object(finished, bucket):
    done = CliRunner().invoke(upload_command, [str(finished), bucket, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["sent"] == 9


def test_a_bucket_that_is_not_there_is_one_line(finished, bucket):
    with pytest.raises(CloudRefused, match="s3://other"):
        upload(finished, "s3://other/x")


def test_an_open_recording_is_not_uploaded(finished):
    with edit_manifest(finished) as manifest:
        manifest["state"] = "recording"
    with pytest.raises(NotFinished):
        upload(finished, "file:///nowhere")


def test_without_the_extra_the_command_says_what_to_install(finished, monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(CloudRefused, match="cloud"):
        upload(finished, "s3://lab/x")


@pytest.mark.parametrize(
    "url", ["sftp://chef:onion@nas/kitchen", "simplecache::sftp://chef:onion@nas/kitchen"]
)
def test_a_password_in_the_address_is_refused_before_it_is_kept(finished, url):
    with pytest.raises(SecretInAddress, match="FSSPEC_SFTP_PASSWORD") as refused:
        upload(finished, url)
    assert "onion" not in str(refused.value)
    assert not (finished / "copies.jsonl").exists()


def test_not_one_object_of_a_withdrawn_recording_reaches_the_store(finished, bucket, tmp_path):
    """Also where the store is the laboratory's own, for a stated reason, and of a virtual kitchen."""
    import s3fs

    (finished.parent / "lab.toml").write_text(f'stores = ["{bucket}"]')
    for virtual in (False, True):
        with edit_manifest(finished) as manifest:
            manifest |= {"withdrawn": {"host_ns": 1}, "virtual": virtual}
        done = CliRunner().invoke(main, ["upload", str(finished), bucket, "--without-consent", "we may"])
        assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
        assert "withdrew" in done.stderr
    assert s3fs.S3FileSystem(skip_instance_cache=True).find(bucket) == []


def test_a_bucket_that_keeps_versions_keeps_none_of_a_withdrawn_recording(finished, bucket):
    import s3fs

    there, name = s3fs.S3FileSystem(skip_instance_cache=True), bucket.split("/")[2]
    asked = {"Bucket": name, "VersioningConfiguration": {"Status": "Enabled"}}
    there.call_s3("put_bucket_versioning", **asked)
    there.pipe_file(f"{name}/kitchen/take-2/recording.json", b"of another")
    with edit_manifest(finished) as manifest:
        manifest["virtual"] = True
    for _ in range(2):
        assert CliRunner().invoke(main, ["upload", str(finished), bucket]).exit_code == 0
        there.rm(f"{bucket}/take", recursive=True)
    assert len(there.call_s3("list_object_versions", Bucket=name)["Versions"]) > 10
    done = CliRunner().invoke(main, ["withdraw", str(finished), "--json"])
    assert (done.exit_code, json.loads(done.stdout)["status"]) == (0, "done")
    left = there.call_s3("list_object_versions", Bucket=name)
    kept = [one["Key"] for one in (*left["Versions"], *left.get("DeleteMarkers", ()))]
    assert kept == ["kitchen/take-2/recording.json"]


def test_who_sends_to_strangers_hears_what_is_in_the_files(finished, bucket):
    told = CliRunner().invoke(main, ["upload", str(finished), bucket])
    assert (told.exit_code, told.stderr.count("serial numbers and places")) == (0, 1)
    (finished.parent / "lab.toml").write_text(f'stores = ["{bucket}"]')
    assert CliRunner().invoke(main, ["upload", str(finished), bucket]).stderr == ""


def test_a_place_that_another_copy_took_meanwhile_is_refused(finished, bucket):
    import s3fs

    class Unconditional(s3fs.S3FileSystem):
        async def _pipe_file(self, path, data, *more, mode="overwrite", **options):
            if mode == "create":
                raise OSError(errno.ENOSYS, "a header implies functionality that is not implemented")
            await super()._pipe_file(path, data, *more, mode=mode, **options)

    store = CloudStore(bucket)
    store.announce("take", b"first", is_new=True)
    with pytest.raises(PlaceTaken, match="another copy, which has just begun"):
        store.announce("take", b"second", is_new=True)
    assert store.manifest_of("take") == b"first"
    store._store = Unconditional(skip_instance_cache=True)
    store.announce("other", b"second", is_new=True)
    assert store.manifest_of("other") == b"second"
