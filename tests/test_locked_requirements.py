"""What `make install` fetches is named with its version and hashes, and nothing is fetched beside it."""

from __future__ import annotations

import configparser
import re
import subprocess
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).resolve().parents[1]
STAGES = {"core": ("data", "record", "app"), "dev": ("dev", "gopro"), "all": ("calib", "cloud", "view")}


def locked(stage: str) -> dict[str, tuple[str, list[str]]]:
    """Name of each package of a file, with its version and hashes."""
    text = (REPOSITORY / "requirements" / f"{stage}.txt").read_text(encoding="utf-8")
    blocks = [block for block in re.split(r"^(?=\S)", text, flags=re.MULTILINE) if "==" in block]
    found = {}
    for block in blocks:
        name, version = block.split(maxsplit=1)[0].split("==")
        found[canonicalize_name(name)] = (version, re.findall(r"--hash=sha256:([0-9a-f]{64})\b", block))
    return found


def test_each_package_has_one_version_with_hashes() -> None:
    for stage in STAGES:
        assert locked(stage)
        assert not [name for name, (_, hashes) in locked(stage).items() if not hashes]
    for earlier, later in (("core", "dev"), ("core", "all"), ("dev", "all")):
        for name in locked(earlier).keys() & locked(later).keys():  # on more systems than before
            assert locked(earlier)[name] == locked(later)[name]


def test_what_setup_cfg_asks_for_is_locked_within_its_bounds() -> None:
    config = configparser.ConfigParser()
    config.read(REPOSITORY / "setup.cfg", encoding="utf-8")
    asked = {
        stage: [
            line
            for extra in extras
            for line in config["options.extras_require"][extra].splitlines()
            if not line.startswith("kitchensync[")  # those extras are named here themselves
        ]
        for stage, extras in STAGES.items()
    }
    asked["core"] += config["options"]["install_requires"].splitlines()
    known: dict[str, tuple[str, list[str]]] = {}
    for stage in STAGES:
        known |= locked(stage)
        for line in filter(None, asked[stage]):
            wanted = Requirement(line)
            version, _ = known[canonicalize_name(wanted.name)]
            assert wanted.specifier.contains(version, prereleases=True), (
                f"make lock: {line} against {version}"
            )


def test_make_installs_by_hash_alone() -> None:
    said = subprocess.run(
        ["make", "--dry-run", "--always-make", "install"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    installs = re.findall(r"^.*pip install.*$", said, re.MULTILINE)
    assert len(installs) == len(STAGES) + 1
    assert all("--no-deps" in line and "--no-build-isolation" in line for line in installs)
    assert [line for line in installs if "--require-hashes" not in line] == [
        line for line in installs if line.endswith(" -e .")
    ]
