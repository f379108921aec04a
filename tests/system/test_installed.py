"""What is built can be installed anywhere: the command, the Python API and every file that they need."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from small_recordings import write_recordings

import kitchensync as ks
from kitchensync.storage.errors import NotARecording

pytestmark = pytest.mark.system
REPOSITORY = Path(__file__).resolve().parents[2]
FOLDERS = sorted(path.parent.name for path in (REPOSITORY / "kitchensync").glob("*/__init__.py"))
NO_NETWORK = "Could not find a version", "No matching distribution", "ConnectionError", "NewConnectionError"


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=170)


def tracked() -> list[str]:
    done = run("git", "ls-files", cwd=REPOSITORY)
    if done.returncode:
        pytest.skip("this is no clone: nobody says which files belong to it")
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[zipfile.ZipFile, tarfile.TarFile]:
    """The source distribution of a copy of the clone, and the wheel that was built from it."""
    source = tmp_path_factory.mktemp("source")
    for name in tracked():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, source / name, follow_symlinks=False)
    done = run(sys.executable, "-m", "build", "--outdir", source / "dist", source, cwd=source)
    if done.returncode and any(words in done.stdout + done.stderr for words in NO_NETWORK):
        pytest.skip("no package registry answers: setuptools cannot be fetched to build with")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (wheel,) = (source / "dist").glob("*.whl")
    (archive,) = (source / "dist").glob("*.tar.gz")
    return zipfile.ZipFile(wheel), tarfile.open(archive)


def test_every_shipped_file_is_in_the_wheel_and_in_the_source_distribution(built):
    wheel, archive = built
    shipped = sorted(name for name in tracked() if name.startswith("kitchensync/"))
    assert "kitchensync/py.typed" in shipped
    assert sorted(name for name in wheel.namelist() if ".dist-info/" not in name) == shipped
    names = [name.partition("/")[2] for name in archive.getnames()]
    assert {*shipped} - {*names} == set()
    assert [name for name in names if name.split("/")[0] in FOLDERS] == []
    at_the_top = {name.partition("/")[0] for name in wheel.namelist()}
    assert {name for name in at_the_top if not name.endswith(".dist-info")} == {"kitchensync"}


def test_the_wheel_gives_command_and_api_outside_the_clone(built, tmp_path):
    """In an environment of its own; what it depends on is lent by the environment of the tests."""
    home = tmp_path / "venv"
    venv.create(home, with_pip=False)
    packages = home / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    built[0].extractall(packages)
    lent = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "lent.pth").write_text(f"import sys; sys.path.extend({lent!r})\n")
    write_recordings(tmp_path / "data")
    (take, *_) = ks.list_recordings(tmp_path / "data")
    for name in FOLDERS:
        (tmp_path / f"{name}.py").write_text("raise AssertionError('a file of the lab')")
    python = home / "bin" / "python"
    shown = run(python, "-m", "kitchensync", "--help", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "record" in shown.stdout
    code = f"import json, kitchensync as ks; print(ks.__file__); print(json.dumps(ks.verify({str(take)!r})))"
    file, answer = run(python, "-c", code, cwd=tmp_path).stdout.splitlines()
    code = "from kitchensync.recipe_app.store.shelf import OWN_RECIPES as own; print(*own.glob('*.json'), sep='\\n')"
    recipes = run(python, "-c", code, cwd=tmp_path).stdout.splitlines()
    assert {Path(path).name for path in recipes} == {
        path.name for path in (REPOSITORY / "kitchensync/examples/recipes").glob("*.json")
    }
    assert all(Path(path).is_relative_to(home) for path in recipes)
    assert Path(file).is_relative_to(home)
    assert json.loads(answer)["schema"] == "verify/1"


def test_the_api_answers_what_the_commands_print(tmp_path):
    write_recordings(tmp_path / "data")
    (take, *_) = ks.list_recordings(tmp_path / "data")
    command = [sys.executable, "-P", "-m", "kitchensync"]
    printed = json.loads(run(*command, "verify", take, "--json", cwd=tmp_path).stdout)
    assert ks.verify(take) == printed
    synced = ks.synchronize(take)
    again = json.loads(run(*command, "sync", take, "--json", cwd=tmp_path).stdout)
    assert [(one["recording"], one["status"], one["pairs"]) for one in synced["recordings"]] == [
        (one["recording"], one["status"], one["pairs"]) for one in again["recordings"]
    ]
    with ks.open(take) as recording:
        assert len(recording["hololens/gyroscope"].times)


@pytest.mark.parametrize("ask", [ks.open, ks.verify, ks.synchronize, ks.list_recordings])
def test_what_is_no_recording_is_refused(ask, tmp_path):
    with pytest.raises(NotARecording):
        ask(tmp_path / "nope")
