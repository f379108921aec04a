"""Two films, or a film and any motion, are aligned without a headset."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from camera_films import FilmPlan, synthesize
from click.testing import CliRunner, Result
from phone_films import write_phone_film

from kitchensync.cli import main
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.virtual_kitchen.world.clocks import camera_clock
from kitchensync.virtual_kitchen.world.motion import simulated_motion

MOTION, REFERENCE, FILM, OTHER = 41, 42, 43, 44
LATER_S = 7.3
CSV_HZ = 241.7
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two cameras on one moving head, the second begins later; and a third camera on another head."""
    root = tmp_path_factory.mktemp("films")
    plans = {
        "reference": FilmPlan(1500, 320, 180, b"avc1", seed=REFERENCE),
        "film": FilmPlan(1200, 320, 180, b"avc1", seed=FILM, start_world_s=LATER_S),
        "other": FilmPlan(1200, 320, 180, b"avc1", seed=OTHER),
    }
    for name, plan in plans.items():
        (root / name).mkdir()
        synthesize(root / name, plan, simulated_motion(MOTION if name != "other" else OTHER))
    return {name: next((root / name).glob("*.MP4")) for name in plans}


def _align(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["align", *map(str, arguments)])


def _answer(*arguments: object) -> dict[str, Any]:
    done = _align(*arguments, "--json")
    answer: dict[str, Any] = json.loads(done.stdout)
    assert done.exit_code == (1 if answer["status"] == "not_aligned" else 0)
    return answer


def _reference_media_s(film_s: np.ndarray) -> np.ndarray:
    """What the virtual kitchen knows: seconds of the reference's film at seconds of the other's."""
    world_s = camera_clock(FILM).world_s_at(film_s, LATER_S)
    return world_s / (1 + camera_clock(REFERENCE).drift_ppm * 1e-6)


def _off_ms(answer: dict[str, Any], truth: Callable[[np.ndarray], np.ndarray]) -> float:
    film_s, reference_s = np.array(answer["samples"]).T
    return float(np.abs(reference_s - truth(film_s)).max() * 1e3)


def _exact(t_s: np.ndarray) -> np.ndarray:
    return t_s


def _write_table(
    path: Path,
    begin_s: float,
    per_radian: float,
    stamped: Callable[[np.ndarray], np.ndarray] = _exact,
    seconds: float = 50.0,
) -> Path:
    """Rates of the head that carries the cameras, as another device's table has them."""
    world_s = np.arange(0.0, seconds, 1 / CSV_HZ)
    rates = simulated_motion(MOTION).angular_velocity(world_s) * per_radian
    stamps = stamped(begin_s + world_s)
    rows = [f"{t:.6f},{x:.6f},{y:.6f},{z:.6f}" for t, (x, y, z) in zip(stamps, rates, strict=True)]
    path.write_text("\n".join(["t_s,x,y,z", *rows]) + "\n")
    return path


def test_two_films_are_aligned_within_their_bound(films: dict[str, Path]) -> None:
    answer = _answer("--reference", films["reference"], "--film", films["film"])
    assert (answer["status"], answer["master_clock"]) == ("aligned", "reference_media_s")
    assert len(answer["samples"]) == 31
    assert [row[0] for row in answer["samples"]] == pytest.approx(list(np.linspace(0, 40, 31)), abs=1.1)
    assert _off_ms(answer, _reference_media_s) <= max(answer["sigma"]["bound95_ms"]) < 1.0
    assert {part["part"] for part in answer["sigma"]["systematic_ms"]} == {
        "gyro_to_frame",
        "reference_gyro_to_frame",
    }
    assert all(clue["agrees"] is not False for clue in answer["evidence"]["film"])


@pytest.mark.parametrize("unit", ["deg_per_s", "rad_per_s"])
@pytest.mark.parametrize("is_stated", [True, False], ids=["stated", "found"])
@pytest.mark.parametrize("begin_s", [0.0, 1_750_000_000.25], ids=["seconds", "date"])
def test_a_table_is_a_reference(
    films: dict[str, Path], tmp_path: Path, unit: str, is_stated: bool, begin_s: float
) -> None:
    table = _write_table(tmp_path / "wrist.csv", begin_s, {"deg_per_s": np.rad2deg(1), "rad_per_s": 1}[unit])
    stated = ["--unit", unit] if is_stated else []
    answer = _answer("--reference", table, "--film", films["film"], *stated)
    assert answer["status"] == "aligned"
    assert answer["streams"]["reference_gyro"]["unit"]["name"] == unit
    off_ms = _off_ms(answer, lambda t_s: begin_s + camera_clock(FILM).world_s_at(t_s, LATER_S))
    assert off_ms <= max(answer["sigma"]["bound95_ms"])


@pytest.mark.parametrize("unit", ["deg_per_s", "rad_per_s"])
def test_a_table_is_placed_on_a_film(films: dict[str, Path], tmp_path: Path, unit: str) -> None:
    table = _write_table(tmp_path / "wrist.csv", 2.5, {"deg_per_s": np.rad2deg(1), "rad_per_s": 1}[unit])
    answer = _answer("--reference", films["film"], "--film", table)
    assert answer["status"] == "aligned"
    assert any(f"in {unit} by comparison" in said for said in answer["warnings"])

    def truth(t_s: np.ndarray) -> np.ndarray:
        return (t_s - 2.5 - LATER_S) / (1 + camera_clock(FILM).drift_ppm * 1e-6)

    assert _off_ms(answer, truth) <= max(answer["sigma"]["bound95_ms"])


@pytest.mark.parametrize(
    ("step_s", "round_to"),
    [(0.001, np.floor), (0.01, np.floor), (0.01, np.round), (0.02, np.round), (0.1, np.ceil)],
)
def test_rounded_times_of_a_table_are_inside_of_its_bound(
    films: dict[str, Path], tmp_path: Path, step_s: float, round_to: Callable[[np.ndarray], np.ndarray]
) -> None:
    """Nobody sees which way they were rounded: the bound has to hold it, and rows with one time are named."""
    table = _write_table(tmp_path / "wrist.csv", 0.0, 1.0, lambda t_s: round_to(t_s / step_s) * step_s)
    answer = _answer("--reference", table, "--film", films["film"])
    off_ms = _off_ms(answer, lambda t_s: camera_clock(FILM).world_s_at(t_s, LATER_S))
    assert off_ms <= max(answer["sigma"]["bound95_ms"])
    is_repeated = step_s > 1 / CSV_HZ
    assert answer["status"] == ("check" if is_repeated else "aligned")
    assert any("its times are rounded" in reason for reason in answer["reasons"]) is is_repeated


def test_films_that_do_not_belong_together_say_so(films: dict[str, Path]) -> None:
    answer = _answer("--reference", films["reference"], "--film", films["other"])
    assert (answer["status"], answer["samples"]) == ("not_aligned", [])
    assert "map" not in answer
    assert answer["reasons"]


def test_a_real_film_belongs_to_no_virtual_one(
    films: dict[str, Path], shared_data: Callable[[str], Path]
) -> None:
    answer = _answer("--reference", films["reference"], "--film", shared_data("gopro/max-heromode.mp4"))
    assert answer["status"] == "not_aligned"
    assert answer["reasons"]


@pytest.mark.parametrize(
    ("reference", "film", "why"),
    [
        ("max-heromode.mp4", "hero11-chapter.raw", "common motion"),
        ("hero11-chapter.raw", "max-heromode.mp4", "common motion"),
        ("hero11-chapter.raw", "hero7-rec1.raw", "hero7-rec1.raw holds"),
        ("hero7-rec1.raw", "hero7-rec2.raw", "hero7-rec1.raw holds"),
    ],
)
def test_real_cameras_that_do_not_belong_together_say_why(
    shared_data: Callable[[str], Path], reference: str, film: str, why: str
) -> None:
    paths = [shared_data(f"gopro/{name}") for name in (reference, film)]
    answer = _answer("--reference", paths[0], "--film", paths[1])
    assert answer["status"] == "not_aligned"
    assert any(why in reason for reason in answer["reasons"])


def test_telemetry_without_its_film_is_compared_and_never_certified(
    films: dict[str, Path], tmp_path: Path
) -> None:
    payloads = open_media(films["film"]).payloads
    (tmp_path / "film.raw").write_bytes(b"".join(payload.data for payload in payloads))
    answer = _answer("--reference", films["reference"], "--film", tmp_path / "film.raw")
    assert answer["status"] == "check"
    assert any("telemetry without its film" in reason for reason in answer["reasons"])
    assert _off_ms(answer, _reference_media_s) < 1.0


def test_a_real_film_read_by_another_reader_is_on_the_same_time(
    shared_data: Callable[[str], Path], tmp_path: Path
) -> None:
    parser = pytest.importorskip("telemetry_parser", reason="telemetry-parser is not here")
    film = shared_data("gopro/max-heromode.mp4")
    samples = parser.Parser(str(film)).normalized_imu()
    rows = [
        f"{one['timestamp_ms'] / 1e3:.6f},{','.join(f'{rate:.6f}' for rate in one['gyro'])}"
        for one in samples
    ]
    (tmp_path / "other.csv").write_text("\n".join(["t_s,x,y,z", *rows]) + "\n")
    answer = _answer("--reference", tmp_path / "other.csv", "--film", film, "--unit", "deg_per_s")
    assert answer["status"] == "aligned"
    begins_s = answer["samples"][0][1]
    assert begins_s == pytest.approx(0.0, abs=0.02)  # that reader counts from the first sample, some ms away


def test_a_phone_is_compared_and_never_certified(films: dict[str, Path], tmp_path: Path) -> None:
    """Its telemetry has no stamps of pictures, and its reader rounds times to milliseconds: both are said."""
    pytest.importorskip("telemetry_parser", reason="telemetry-parser is not here")
    plan = FilmPlan(900, 320, 180, b"avc1", seed=FILM, start_world_s=LATER_S)
    film = write_phone_film(tmp_path / "GH010001.MP4", plan, simulated_motion(MOTION))
    answer = _answer("--reference", films["reference"], "--film", film)
    assert answer["status"] == "check"
    assert any("where its telemetry lies on its pictures" in reason for reason in answer["reasons"])
    assert any("stamps run" in reason for reason in answer["reasons"])
    begins_s = answer["samples"][0][1]
    assert begins_s == pytest.approx(float(_reference_media_s(np.zeros(1))[0]), abs=2e-3)


def test_a_film_without_motion_is_refused(films: dict[str, Path], tmp_path: Path) -> None:
    film = write_phone_film(
        tmp_path / "GH010002.MP4", FilmPlan(60, 320, 180, b"avc1"), simulated_motion(MOTION)
    )
    film.write_bytes(film.read_bytes().replace(b"camm", b"none"))
    done = _align("--reference", films["reference"], "--film", film)
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    assert film.name in done.stderr


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("time,x,y,z\n0,1,2,3\n", "no column t_s"),
        ("t_s,x,y,z\n0,1,2,three\n", "not a table of numbers"),
        ("t_s,x,y,z\n", "usable samples"),
        ("t_s,x,y,z\n0,1,2\n", "not a table of numbers"),
        ("", "no column"),
    ],
)
def test_what_is_no_table_is_refused_in_one_line(
    films: dict[str, Path], tmp_path: Path, text: str, why: str
) -> None:
    (tmp_path / "bad.csv").write_text(text)
    done = _align("--reference", tmp_path / "bad.csv", "--film", films["film"], "--unit", "rad_per_s")
    assert done.exit_code == 1
    assert why in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("stamped", "why"),
    [
        (lambda t_s: t_s * 1e3, "t_s must be in seconds"),
        (lambda t_s: np.where(t_s > 20, t_s + 5e4, t_s), "its times jump by 50000 s"),
        (lambda t_s: np.where(t_s == t_s[100], 5e4, t_s), "with rising times"),
        (lambda t_s: t_s[::-1], "usable samples"),
    ],
    ids=["milliseconds", "jump", "one stray stamp", "backwards"],
)
@pytest.mark.parametrize("role", ["--reference", "--film"])
def test_times_that_are_no_seconds_are_refused_at_once(
    films: dict[str, Path], tmp_path: Path, stamped: Callable[[np.ndarray], np.ndarray], why: str, role: str
) -> None:
    table = _write_table(tmp_path / "wrist.csv", 0.0, 1.0, stamped)
    other = "--film" if role == "--reference" else "--reference"
    done = _align(role, table, other, films["film"], "--unit", "rad_per_s")
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    assert why in done.stderr


@pytest.mark.parametrize("begin_s", [-60.0, 40_000.0])
def test_a_film_whose_time_does_not_count_from_its_start_is_refused(
    films: dict[str, Path], tmp_path: Path, begin_s: float
) -> None:
    table = _write_table(tmp_path / "wrist.csv", begin_s, 1.0)
    done = _align("--reference", films["reference"], "--film", table, "--unit", "rad_per_s")
    assert (done.exit_code, "give it as --reference" in done.stderr) == (1, True)


def test_a_rate_that_no_sensor_has_is_left_out(films: dict[str, Path], tmp_path: Path) -> None:
    table = _write_table(tmp_path / "wrist.csv", 0.0, 1.0)
    lines = table.read_text().splitlines()
    lines[500] = lines[500].partition(",")[0] + ",1e300,0,0"
    table.write_text("\n".join(lines))
    answer = _answer("--reference", table, "--film", films["film"])
    assert answer["status"] == "aligned"
    assert any("1 rows are" in said for said in answer["warnings"])


def test_two_tables_need_their_unit(tmp_path: Path) -> None:
    first, second = (_write_table(tmp_path / f"{name}.csv", 0.0, 1.0) for name in ("first", "second"))
    done = _align("--reference", first, "--film", second)
    assert (done.exit_code, "add --unit" in done.stderr) == (1, True)
    assert _answer("--reference", first, "--film", second, "--unit", "rad_per_s")["status"] == "aligned"


def test_rows_out_of_order_are_named(films: dict[str, Path], tmp_path: Path) -> None:
    table = _write_table(tmp_path / "wrist.csv", 0.0, 1.0)
    lines = table.read_text().splitlines()
    lines[500:500] = [lines[20], "600.0,nan,0,0"]
    table.write_text("\n".join(lines))
    answer = _answer("--reference", table, "--film", films["film"])
    assert answer["status"] == "aligned"
    assert any("2 rows are out of order" in said for said in answer["warnings"])


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--reference", "a"],
        ["--reference", "a", "--film", "b", "--hololens", "c"],
        ["--gopro", "a", "--film", "b"],
    ],
)
def test_pairs_of_options_belong_together(tmp_path: Path, arguments: list[str]) -> None:
    for name in "abc":
        (tmp_path / name).touch()
    given = [str(tmp_path / one) if one in "abc" else one for one in arguments]
    done = _align(*given)
    assert (done.exit_code, "--reference and --film, or --hololens and --gopro" in done.stderr) == (2, True)
