"""`release push`: to a folder, a real S3 server and the hub's own client; proved, taken up again, by consent."""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import made_data_sets
import pytest
from click.testing import CliRunner
from folder_contents import contents
from s3_server import s3_server

from kitchensync.cli import main
from kitchensync.dataset.checks.check import check
from kitchensync.storage.copies.derived_files import made_before
from kitchensync.storage.copies.target import Target
from kitchensync.storage.manifest import edit_manifest, write_json

# The clients of others leave the closing of sockets to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_data_sets.own_data_set(tmp_path_factory.mktemp("whole") / "set", count=2)


@pytest.fixture
def data_set(whole: Path, tmp_path: Path) -> Path:
    """A data set, its table of ids, and its two recordings, to which somebody agreed."""
    shutil.copy(whole.with_name("set.numbering.json"), tmp_path / "set.numbering.json")
    for number in (1, 2):
        manifest: dict[str, Any] = {
            "schema": "recording/1",
            "recording": f"take-{number}",
            "state": "complete",
            "uuid": f"uuid-{number}",
        }
        manifest |= {"files": {}, "streams": {}, "devices": {}}
        agreed = {"consent": "form-1", "consent_scopes": ["release_raw"]}
        (tmp_path / "data" / f"take-{number}").mkdir(parents=True)
        write_json(tmp_path / "data" / f"take-{number}" / "recording.json", manifest | agreed)
    return Path(shutil.copytree(whole, tmp_path / "set"))


def push(data_set: Path, to: object, *more: str) -> Any:
    words = [
        "release",
        "push",
        str(data_set),
        "--to",
        str(to),
        "--data",
        str(data_set.parent / "data"),
        "--json",
        *more,
    ]
    done = CliRunner().invoke(main, words)
    return done.exit_code, json.loads(done.stdout)


def test_a_folder_gets_every_file_and_none_twice(data_set: Path, tmp_path: Path) -> None:
    (tmp_path / "nas").mkdir()
    to = tmp_path / "nas" / "our-kitchens"
    code, said = push(data_set, to)
    assert (code, said.get("sent"), said.get("files")) == (
        0,
        len(contents(data_set)),
        len(contents(data_set)),
    ), said
    assert contents(to) == contents(data_set)
    assert check(to).differences == []
    assert push(data_set, to)[1]["sent"] == 0
    (to / "README.md").unlink()
    assert push(data_set, to)[1]["sent"] == 1
    shutil.rmtree(
        data_set.with_name("set.pushed")
    )  # who lost the journal reads back, and sends nothing again
    assert push(data_set, to)[1]["sent"] == 0
    assert check(data_set).differences == []  # nothing of the journal lies in the data set


def left_out(data_set: Path, name: str) -> None:
    """Make the next version of a data set, without a file."""
    (data_set / name).unlink()
    sums = data_set / "SHA256SUMS"
    sums.write_text(
        "".join(line for line in sums.read_text().splitlines(True) if not line.endswith(f" {name}\n"))
    )


def film_of(data_set: Path) -> str:
    return min(name for name in contents(data_set) if name.endswith(".mp4"))


@pytest.mark.parametrize("store", ["folder", "file"])
def test_what_left_the_data_set_is_removed_and_what_others_put_there_stays(
    data_set: Path, tmp_path: Path, store: str
) -> None:
    public = tmp_path / "nas" / "set"
    (tmp_path / "nas").mkdir()
    to = public if store == "folder" else f"file://{public}"
    push(data_set, to)
    (public / "notes.txt").write_text("of somebody else")
    film = film_of(data_set)
    left_out(data_set, film)
    shutil.rmtree(data_set.with_name("set.pushed"))  # another computer's journal, or none
    code, said = push(data_set, to, "--keep-old")
    assert (code, said["removed"], said["kept_old"], said["foreign"]) == (0, [], [film], ["notes.txt"])
    assert (public / film).is_file()
    code, said = push(data_set, to)
    assert (code, said["removed"], said["kept_old"], said["foreign"]) == (0, [film], [], ["notes.txt"])
    assert contents(public).keys() == contents(data_set).keys() | {"notes.txt"}
    left_out(data_set, "README.md")
    (public / "README.md").write_text("another one by now")
    assert push(data_set, to)[1]["foreign"] == ["README.md", "notes.txt"]


def withdrawn_places(recording: Path) -> dict[str, str]:
    """Withdraw a recording; return what is open, by place."""
    done = CliRunner().invoke(main, ["withdraw", str(recording), "--json"])
    assert done.exit_code == 0, done.output
    return {one["place"]: one["open"] for one in json.loads(done.stdout)["places"] if one["open"]}


@pytest.mark.parametrize("store", ["folder", "relative", "file"])
@pytest.mark.parametrize("more", [(), ("--without-consent", "asked by mail")])
def test_a_withdrawal_names_where_a_data_set_with_the_recording_was_pushed(
    data_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str, more: tuple[str, ...]
) -> None:
    (tmp_path / "nas").mkdir()
    monkeypatch.chdir(tmp_path / "nas")
    take = tmp_path / "data" / "take-2"
    if more:
        take_back(take)
    public = tmp_path / "nas" / "set"
    to = {"folder": str(public), "relative": "set", "file": f"file://{public}/"}[store]
    place = f"file://{public}" if store == "file" else str(public)
    assert push(data_set, to, *more)[0] == 0
    (named,) = made_before(take, time.time_ns())  # by a redaction
    left = withdrawn_places(take)
    assert left.keys() == {place}
    assert f"the data set {data_set} with this recording was pushed there; make it again" in left[place]
    assert "release push" in left[place]
    assert named == f"{place}: {left[place].replace('again without it', 'again')}"
    shutil.rmtree(data_set)
    (tmp_path / "one").mkdir()
    made_data_sets.own_data_set(tmp_path / "one" / "set", count=1)  # without the recording
    shutil.copytree(tmp_path / "one" / "set", data_set)
    code, said = push(data_set, to, "--keep-old")
    assert (code, bool(said["kept_old"])) == (0, True), said
    assert withdrawn_places(take).keys() == {place}, "its files are still there"
    code, said = push(data_set, to)
    assert (code, bool(said["removed"])) == (0, True), said
    assert contents(public) == contents(data_set)
    assert withdrawn_places(take) == {}


def test_an_interrupted_push_goes_on_and_what_says_it_is_whole_comes_last(
    data_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nas").mkdir()
    to, real, begun = tmp_path / "nas" / "set", Target.copy, []

    def dying(self: Target, source: Path, *more: Any) -> Any:
        begun.append(source.name)
        if len(begun) == 6:
            raise OSError(28, "No space left on device")
        return real(self, source, *more)

    with monkeypatch.context() as patch:
        patch.setattr(Target, "copy", dying)
        code, said = push(data_set, to)
        assert (code, said["status"]) == (1, "refused")
        assert "no space left" in said["reason"]
    assert len(contents(to)) == 5
    assert "SHA256SUMS" not in contents(to)
    code, said = push(data_set, to)
    assert (code, said["sent"]) == (0, len(contents(data_set)) - 5)
    assert contents(to) == contents(data_set)


def test_a_file_that_is_no_longer_what_was_released_is_not_sent(data_set: Path, tmp_path: Path) -> None:
    (tmp_path / "nas").mkdir()
    (data_set / "croissant.json").write_text("{}")
    code, said = push(data_set, tmp_path / "nas" / "set")
    assert (code, "croissant.json: is not what SHA256SUMS says" in said["reason"]) == (1, True)
    assert not (tmp_path / "nas" / "set" / "croissant.json").exists()
    assert not (tmp_path / "nas" / "set" / "SHA256SUMS").exists()


def withdraw(path: Path) -> None:
    with edit_manifest(path) as manifest:
        manifest["withdrawn"] = {"utc_ns": 1}


def take_back(path: Path) -> None:
    with edit_manifest(path) as manifest:
        manifest["consent_scopes"] = []


@pytest.mark.parametrize("no_longer", [take_back, withdraw, shutil.rmtree])
def test_a_recording_that_may_not_leave_any_more_holds_the_data_set_back(
    data_set: Path, tmp_path: Path, no_longer: Callable[[Path], None]
) -> None:
    (tmp_path / "nas").mkdir()
    no_longer(data_set.parent / "data" / "take-2")
    code, said = push(data_set, tmp_path / "nas" / "set")
    assert (code, said["status"]) == (1, "refused")
    assert "take-2" in said["reason"] or "1_26" in said["reason"]
    assert list((tmp_path / "nas").iterdir()) == []
    code, said = push(data_set, tmp_path / "nas" / "set", "--without-consent", "asked by mail on 3 May")
    assert code == (0 if no_longer is take_back else 1)  # a withdrawal is never overridden
    if no_longer is take_back:
        (kept,) = json.loads((data_set.with_name("set.pushed") / "without-consent.json").read_text())
        assert kept["reason"] == "asked by mail on 3 May"
        assert "1_26" in kept["recordings"][0]


def test_a_published_folder_needs_nobody_s_consent(tmp_path: Path) -> None:
    made_data_sets.write(tmp_path / "published", made_data_sets.recordings(1))
    run = CliRunner().invoke
    words = ["release", "captaincook4d", str(tmp_path / "published"), "--out", str(tmp_path / "set")]
    assert run(main, words).exit_code == 0
    (tmp_path / "nas").mkdir()
    done = run(main, ["release", "push", str(tmp_path / "set"), "--to", str(tmp_path / "nas" / "set")])
    assert done.exit_code == 0, done.output
    assert contents(tmp_path / "nas" / "set") == contents(tmp_path / "set")


@pytest.mark.slow
def test_an_s3_store_gets_every_file_once_and_loses_what_left_the_data_set(
    data_set: Path, tmp_path: Path
) -> None:
    s3fs = pytest.importorskip("s3fs")
    (tmp_path / "moto").mkdir()
    with s3_server(tmp_path / "moto"):
        s3fs.S3FileSystem.clear_instance_cache()
        s3fs.S3FileSystem(skip_instance_cache=True).mkdir("lab")
        code, said = push(data_set, "s3://lab/our-kitchens")
        assert (code, said.get("sent")) == (0, len(contents(data_set))), said
        s3fs.S3FileSystem(skip_instance_cache=True).get(
            "s3://lab/our-kitchens", str(tmp_path / "back"), recursive=True
        )
        assert push(data_set, "s3://lab/our-kitchens")[1]["sent"] == 0
        assert contents(tmp_path / "back") == contents(data_set)
        bucket = s3fs.S3FileSystem(skip_instance_cache=True)
        bucket.pipe_file("lab/our-kitchens/notes.txt", b"of somebody else")
        film = film_of(data_set)
        left_out(data_set, film)
        code, said = push(data_set, "s3://lab/our-kitchens")
        assert (code, said["removed"], said["foreign"]) == (0, [film], ["notes.txt"])
        bucket.invalidate_cache()
        left = {path.removeprefix("lab/our-kitchens/") for path in bucket.find("lab/our-kitchens")}
        assert left == contents(data_set).keys() | {"notes.txt"}
        s3fs.S3FileSystem.clear_instance_cache()
    code, said = push(data_set, "s3://user:secret@lab/x")
    assert (code, "has a password" in said["reason"]) == (1, True)


class Hub(http.server.BaseHTTPRequestHandler):
    """As much of the hub as its own client asks for: a repository, large files by hash, one commit."""

    large: dict[str, bytes]
    files: dict[str, bytes]
    commits: list[int]
    private: list[bool]

    def answer(self, said: Any, status: int = 200) -> None:
        content = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers["content-length"] or 0))

    def do_GET(self) -> None:
        tree = [self._entry(name, content) for name, content in sorted(self.files.items())]
        self.answer(tree if "/tree/" in self.path else {"id": "lab/kitchens", "siblings": []})

    def _entry(self, name: str, content: bytes) -> dict[str, Any]:
        entry: dict[str, Any] = {"type": "file", "path": name, "size": len(content), "oid": "0" * 40}
        if name.endswith((".mp4", ".jpg")):
            sha256 = hashlib.sha256(content).hexdigest()
            entry["lfs"] = {"oid": sha256, "size": len(content), "pointerSize": 130}
        return entry

    def do_POST(self) -> None:
        body = self.body()
        if self.path.endswith("/repos/create"):
            asked = json.loads(body)
            self.private.append(asked.get("private") or asked.get("visibility") == "private")
            self.answer({"url": "http://127.0.0.1/datasets/lab/kitchens"})
        elif "/preupload/" in self.path:
            modes = {True: "lfs", False: "regular"}
            files = [one["path"] for one in json.loads(body)["files"]]
            self.answer({"files": [{"path": p, "uploadMode": modes[p.endswith((".mp4", ".jpg"))],
                                    "shouldIgnore": False, "oid": None} for p in files]})  # fmt: skip
        elif self.path.endswith("/info/lfs/objects/batch"):
            self.answer(
                {"transfer": "basic", "objects": [self._wanted(one) for one in json.loads(body)["objects"]]}
            )
        elif self.path == "/api/validate-yaml":
            self.answer({"errors": [], "warnings": []})
        elif "/commit/" in self.path:
            lines = [json.loads(line) for line in body.splitlines()]
            for one in (line["value"] for line in lines if line["key"] == "file"):
                self.files[one["path"]] = base64.b64decode(one["content"])
            for one in (line["value"] for line in lines if line["key"] == "lfsFile"):
                self.files[one["path"]] = self.large[one["oid"]]
            for one in (line["value"] for line in lines if line["key"] == "deletedFile"):
                del self.files[one["path"]]
            self.commits.append(len(lines) - 1)
            url = f"http://127.0.0.1/datasets/lab/kitchens/commit/{'1' * 40}"
            self.answer({"commitUrl": url, "commitOid": "1" * 40, "success": True})
        else:
            self.answer({"error": self.path}, 404)

    def _wanted(self, one: dict[str, Any]) -> dict[str, Any]:
        if one["oid"] in self.large:
            return one
        host = self.headers["host"]
        return {**one, "actions": {"upload": {"href": f"http://{host}/put/{one['oid']}", "header": {}}}}

    def do_PUT(self) -> None:
        content = self.body()
        assert self.path.endswith(hashlib.sha256(content).hexdigest())
        self.large[self.path.rpartition("/")[2]] = content
        self.answer({})

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Hub]]:
    made = pytest.importorskip("huggingface_hub", reason="not installed: pip install -e '.[dev]'")
    handler = type("Served", (Hub,), {"large": {}, "files": {}, "commits": [], "private": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        monkeypatch.setattr(made.HfApi, "__init__", _at(made.HfApi.__init__, address))
        monkeypatch.setattr("tqdm.tqdm.monitor_interval", 0)  # a thread that never ends
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
        yield handler
        server.shutdown()
        thread.join()


def _at(init: Callable[..., None], address: str) -> Callable[..., None]:
    """The client reads its address when it is imported, which others may have done before."""

    def begin(self: Any, *arguments: Any, **options: Any) -> None:
        init(self, *arguments, **{**options, "endpoint": address, "token": "test"})

    return begin


def test_the_hub_s_client_sends_large_files_once_and_everything_in_one_commit(
    data_set: Path, hub: type[Hub]
) -> None:
    code, said = push(data_set, "hf://datasets/lab/kitchens")
    assert (code, said.get("sent")) == (0, len(contents(data_set))), said
    assert hub.files == contents(data_set)
    assert hub.private == [True]
    assert hub.commits == [len(contents(data_set))]
    assert push(data_set, "hf://datasets/lab/kitchens")[1]["sent"] == 0
    assert len(hub.commits) == 1
    film, hub.files["notes.txt"] = film_of(data_set), b"of somebody else"
    left_out(data_set, film)
    code, said = push(data_set, "hf://datasets/lab/kitchens")
    assert (code, said["removed"], said["foreign"]) == (0, [film], ["notes.txt"])
    assert hub.files.keys() == contents(data_set).keys() | {"notes.txt"}
    assert len(hub.commits) == 2, "what is sent and what is removed, in one"
    code, said = push(data_set, "hf://models/lab/kitchens")
    assert (code, "hf://datasets/OWNER/NAME" in said["reason"]) == (1, True)
    left = withdrawn_places(data_set.parent / "data" / "take-2")
    assert "delete the revisions there that have it" in left["hf://datasets/lab/kitchens"]


def test_what_the_hub_has_of_an_interrupted_push_is_not_sent_again(data_set: Path, hub: type[Hub]) -> None:
    commit = Hub.do_POST

    def failing(self: Hub) -> None:
        if "/commit/" in self.path:
            self.body()
            self.answer({"error": "the hub is being mended"}, 500)
        else:
            commit(self)

    hub.do_POST = failing  # type: ignore[method-assign]
    code, said = push(data_set, "hf://datasets/lab/kitchens")
    assert (code, hub.files, said["status"]) == (1, {}, "refused")
    stored = dict(hub.large)
    assert len(stored) == 2  # a film and a picture, each the same in both recordings
    hub.large.clear()
    hub.large.update(dict.fromkeys(stored, b"here already"))
    hub.do_POST = commit  # type: ignore[method-assign]
    assert push(data_set, "hf://datasets/lab/kitchens")[0] == 0
    assert set(hub.large.values()) == {b"here already"}  # none of them came again
    assert len(hub.files) == len(contents(data_set))
