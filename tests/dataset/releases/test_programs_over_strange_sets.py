"""The programs of a data set over sets and servers that mean harm: one line, no hang, nothing outside."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import importlib
import json
import os
import shutil
import subprocess
import sys
import threading
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import made_data_sets
import numpy as np
import pytest
from made_videos import promise_samples

from kitchensync.dataset.data_set_cards import download_data_set, load_data_set, verify_data_set
from kitchensync.dataset.data_set_cards.download_data_set import Visit, get, read_sums

FILM = made_data_sets.FILM.format("1_1")
LINKS, SUMS, FACTS = "metadata/download_links.json", "SHA256SUMS", "kitchensync.jsonl"
STEPS_CSV = "annotation_csv/step_annotations.csv"
MOST_MIB = 1024
MEASURED = """
import resource, subprocess, sys
done = subprocess.run([sys.executable, "-I", *sys.argv[1:]], stderr=subprocess.STDOUT, timeout=120)
print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
"""
"""Runs a program from a small process: a child of a large one counts as large from its start."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_data_sets.own_data_set(tmp_path_factory.mktemp("strange") / "base", count=2)


@pytest.fixture
def data_set(base: Path, tmp_path: Path) -> Path:
    shutil.copytree(base, tmp_path / "set")
    return tmp_path / "set"


def program(module: Any, *words: object) -> tuple[int, str, int]:
    """Run a program as a stranger would; return its exit code, what it printed, and MiB that it took."""
    command = [sys.executable, "-I", "-c", MEASURED, str(module.__file__), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=True)
    return int(done.stderr.split()[0]), done.stdout, int(done.stderr.split()[1]) >> 10


def linked(folder: Path, kind: str, name: str) -> Path:
    """Name one more file of a recording."""
    links = json.loads((folder / LINKS).read_bytes())
    links["1_1"][kind] = name
    (folder / LINKS).write_text(json.dumps(links))
    return folder / name


def pipe(name: str) -> Callable[[Path], None]:
    def plant(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return plant


def sparse(name: str) -> Callable[[Path], None]:
    def plant(folder: Path) -> None:
        with (folder / name).open("r+b") as file:
            file.truncate(3 << 30)

    return plant


def arrays(name: str, compression: int, damage: Callable[[Path], None]) -> Callable[[Path], None]:
    def plant(folder: Path) -> None:
        path = linked(folder, "gopro_gyroscope_npz", name)
        with zipfile.ZipFile(path, "w", compression) as file, file.open("xyz.npy", "w") as member:
            np.lib.format.write_array(member, np.random.default_rng(1).random(99))
        damage(path)

    return plant


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[60:80] = bytes(20)
    path.write_bytes(content)


def many_zeros(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for number in range(3):
            with file.open(f"a{number}.npy", "w") as member:
                np.lib.format.write_array(member, np.zeros(200 << 20, np.uint8))


def other_files(folder: Path) -> None:
    """The film is a list of others, one of which never ends."""
    (folder / FILM).write_text("ffconcat version 1.0\nfile pipe.mp4\n")
    os.mkfifo((folder / FILM).with_name("pipe.mp4"))


def names(folder: Path) -> None:
    links = json.loads((folder / LINKS).read_bytes())
    (folder / LINKS).write_text(json.dumps(links | {"\x1b]0;owned\x07\ud800": {"a\x1b[2J": "/x"}}))


PLANTED: dict[str, tuple[Callable[[Path], None], int, str]] = {
    "a pipe as sums": (pipe(SUMS), 2, "SHA256SUMS is no file"),
    "a pipe as facts": (pipe(FACTS), 1, "FAIL"),
    "facts of 3 GB": (sparse(FACTS), 1, "FAIL"),
    "sums of 3 GB": (sparse(SUMS), 2, "more than"),
    "links of many objects": (
        lambda folder: (folder / LINKS).write_text(f"[{'{},' * 9_000_000}0]") and None, 1, "holds more than",
    ),
    "a damaged deflate": (arrays("a.npz", zipfile.ZIP_DEFLATED, flip), 1, "cannot be read as plain arrays"),
    "a damaged LZMA": (arrays("a.npz", zipfile.ZIP_LZMA, flip), 1, "cannot be read as plain arrays"),
    "many zeros": (arrays("a.npz", zipfile.ZIP_STORED, many_zeros), 1, "cannot be read as plain arrays"),
    "a list of other films": (other_files, 1, "FAIL"),
    "a film of many samples": (
        lambda folder: promise_samples(folder / FILM, 20_000_000), 1, "more pictures than any has",
    ),
    "a large cell": (
        lambda folder: (folder / STEPS_CSV).write_text(f"recording_id\n{'x' * 200_000}\n"), 1, "field larger",
    ),
    "names that clear the screen": (names, 1, r"\x1b]0;owned\x07"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("planted", PLANTED)
def test_a_strange_set_is_verified_to_the_end(planted: str, data_set: Path) -> None:
    plant, code, words = PLANTED[planted]
    table = linked(data_set, "gopro_360p_frames_npz", "captain_cook_4d/frames.npz")
    taken = np.arange(50) * 100_000_000
    np.savez(table, frame=np.arange(50), capture_ns=taken, bound_ns=taken, hidden=taken > 0, fps=[10, 1])
    plant(data_set)
    found, printed, mib = program(verify_data_set, data_set)
    assert (found, words in printed) == (code, True), printed
    assert all(line.isprintable() for line in printed.splitlines())
    assert "Traceback" not in printed
    assert mib < MOST_MIB


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        (LINKS, "[]", "is not recording -> kind -> file"),
        (LINKS, '{"1_1": {"gopro_360p": 5}}', "is not recording -> kind -> file"),
        (LINKS, '{"1_1\\u001b[2J": {}}', "is not recording -> kind -> file"),
        (LINKS, "{", "cannot be read"),
        ("annotation_json/error_annotations.json", "[5]", "its steps are not told"),
        ("annotation_json/error_annotations.json", "[]", "its steps are not told"),
        ("annotation_json/error_annotations.json", f"[{'{},' * 9_000_000}0]", "it is too large"),
    ],
    ids=range(7),
)
def test_a_strange_set_is_loaded_or_refused(data_set: Path, name: str, content: str, words: str) -> None:
    (data_set / name).write_text(content)
    code, printed, mib = program(load_data_set, data_set)
    assert (code, len(printed.splitlines()), words in printed) == (1, 1, True), printed[:300]
    assert mib < MOST_MIB


def test_ids_of_any_form_are_loaded(data_set: Path) -> None:
    (data_set / LINKS).write_text('{"tea-1": {}, "1_10": {}, "1_9": {}}')
    assert load_data_set.open_data_set(data_set).recordings == ["1_9", "1_10", "tea-1"]


def test_damaged_arrays_and_lists_of_films_are_refused_by_the_loader(data_set: Path) -> None:
    for compression in (zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA):
        arrays("a.npz", compression, flip)(data_set)
        rec = load_data_set.open_data_set(data_set)["1_1"]
        with pytest.raises(load_data_set.NotReleased, match="cannot be read as plain arrays"):
            rec.arrays("gopro_gyroscope_npz")
    other_files(data_set)
    taken = np.arange(3)
    table = {"capture_ns": taken, "bound_ns": taken, "hidden": taken, "fps": (10, 1)}
    film = load_data_set.FilmValues(rec, data_set / FILM, table)
    av = importlib.import_module("av")
    with pytest.raises(av.FFmpegError):
        film[0]


# --- the downloader


@contextlib.contextmanager
def serving(answer: Callable[[http.server.BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """Serve whatever a function answers; yield the address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with contextlib.suppress(OSError):
                answer(self)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


def sent_on(to: str) -> Callable[[http.server.BaseHTTPRequestHandler], None]:
    def answer(request: http.server.BaseHTTPRequestHandler) -> None:
        request.send_response(302)
        request.send_header("Location", to)
        request.send_header("Content-Length", "0")
        request.end_headers()

    return answer


@pytest.mark.parametrize("to", ["file:///etc/passwd", "ftp://127.0.0.1/x", "data:text/plain,x", "/x\r\ny: z"])
def test_a_download_is_sent_on_within_http_only(tmp_path: Path, to: str) -> None:
    with serving(sent_on(to)) as address:
        code, printed, _ = program(download_data_set, address, tmp_path / "set")
    assert (code, len(printed.splitlines())) == (1, 1), printed
    assert not (tmp_path / "set").exists()


def test_a_download_is_sent_on_from_http_to_http_and_from_https_to_https() -> None:
    visit = Visit()
    for origin, to in (("http", "http"), ("http", "https"), ("https", "https")):
        asked = urllib.request.Request(f"{origin}://a.org/x")
        assert (
            visit.redirect_request(asked, None, 302, "", {}, f"{to}://b.org/y").full_url == f"{to}://b.org/y"
        )
    with pytest.raises(OSError, match="from https to http"):
        visit.redirect_request(urllib.request.Request("https://a.org"), None, 302, "", {}, "http://a.org/")


def test_a_download_that_began_at_a_public_address_reaches_no_private_one(tmp_path: Path) -> None:
    reached = []
    with serving(lambda request: reached.append(request.path)) as address:
        visit = Visit()
        visit.connected(SimpleNamespace(getpeername=lambda: ("93.184.216.34", 80)))  # type: ignore[arg-type]
        said = get(visit, address, "a", "0" * 64, tmp_path)
    assert "127.0.0.1, which is not public" in said
    assert reached == []


@pytest.mark.parametrize("peer", ["10.0.0.1", "169.254.169.254", "::1", "fe80::1%eth0", "::ffff:127.0.0.1"])
def test_addresses_that_are_not_public(peer: str) -> None:
    visit = Visit()
    visit.began_public = True
    with pytest.raises(OSError, match="not public"):
        visit.connected(SimpleNamespace(getpeername=lambda: (peer, 80)))  # type: ignore[arg-type]


def test_a_server_that_sends_us_round_is_left(tmp_path: Path) -> None:
    with serving(sent_on("/again")) as address:
        assert "infinite loop" in get(Visit(), address, "a", "0" * 64, tmp_path)


def test_a_server_that_drips_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def drip(request: http.server.BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", "1000")
        request.end_headers()
        while True:
            request.wfile.write(b"0")

    hours = iter(range(0, 1 << 30, 3600))
    monkeypatch.setattr(download_data_set, "time", SimpleNamespace(monotonic=lambda: next(hours)))
    with serving(drip) as address:
        assert "slower than 4096 bytes a second" in get(Visit(), address, "a", "0" * 64, tmp_path)


def test_a_server_that_never_answers_is_hung_up_on() -> None:
    visit = Visit()
    with (
        serving(lambda request: (visit.hang_up(), request.rfile.read())) as address,  # type: ignore[arg-type]
        pytest.raises((OSError, http.client.HTTPException)),
        visit.answer(address),
    ):
        pass


@pytest.mark.parametrize("name", [".", "./", "C:x", "C:/x", "/x", "a/../../x", "a\\b"])
def test_a_name_that_leads_out_is_no_line_of_the_sums(name: str) -> None:
    for module in (download_data_set, verify_data_set):
        with pytest.raises(ValueError, match="not a line of it"):
            module.read_sums(f"{'0' * 64}  {name}\n")
    assert read_sums(f"{'0' * 64}  a/b.txt\n") == {"a/b.txt": "0" * 64}


def test_a_file_and_a_folder_of_one_name_are_one_line(tmp_path: Path) -> None:
    content = b"x"
    digest = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"

    def answer(request: http.server.BaseHTTPRequestHandler) -> None:
        sums = "".join(f"{digest}  {name}\n" for name in ("q/b", "q", f"{'n' * 300}"))
        sent = sums.encode() if request.path == "/SHA256SUMS" else content
        request.send_response(200)
        request.send_header("Content-Length", str(len(sent)))
        request.end_headers()
        request.wfile.write(sent)

    with serving(answer) as address:
        code, printed, _ = program(download_data_set, address, tmp_path / "set")
    assert code == 1
    assert "Traceback" not in printed
    assert printed.splitlines()[-1] == "1 of 3 files are whole"
    (tmp_path / "file").write_text("not a folder")
    with serving(answer) as address:
        code, printed, _ = program(download_data_set, address, tmp_path / "file", "--only", "none")
    assert (code, len(printed.splitlines())) == (1, 1), printed


def test_a_reason_of_a_server_is_shown_with_escapes(tmp_path: Path) -> None:
    with serving(lambda request: request.send_response(404, "\x1b[2J") or request.end_headers()) as address:  # type: ignore[func-returns-value]
        code, printed, _ = program(download_data_set, address, tmp_path / "set")
    assert (code, printed.strip().isprintable()) == (1, True), printed
