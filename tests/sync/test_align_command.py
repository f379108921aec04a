"""`kitchensync align` on files: the contract, to the letter."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest
from click.testing import CliRunner

import kitchensync as ks
from kitchensync.cli import main
from kitchensync.sync.errors import BadArrays


@pytest.fixture(scope="module")
def files(trials, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pair")
    rng = np.random.default_rng(0)
    motion = trials.simulated_motion(rng, 45.0)
    pair = trials.make_pair(motion, motion, rng, trials.Setting(seconds=45.0, degrees=False))
    other = trials.simulated_motion(rng, 45.0)
    np.savez(folder / "h.npz", vinyl_ns=pair.vinyl_ns, soc_ticks=pair.soc_ticks, rad_per_s=pair.rad_per_s)
    np.savez(folder / "g.npz", t_s=pair.t_s, rad_per_s=pair.camera)
    np.savez(folder / "other.npz", t_s=pair.t_s, rad_per_s=other(pair.t_s))
    np.savez(folder / "short.npz", t_s=pair.t_s[:100], rad_per_s=pair.camera[:100])
    return folder, pair


def align(folder, gopro, *options):
    return CliRunner().invoke(
        main, ["align", "--hololens", str(folder / "h.npz"), "--gopro", str(folder / gopro), *options]
    )


def test_an_aligned_pair_prints_the_whole_object(files):
    folder, pair = files
    result = align(folder, "g.npz", "--json")
    assert result.exit_code == 0
    answer = json.loads(result.stdout)
    assert answer["schema"] == "alignment/1"
    assert answer["status"] == "aligned"
    assert answer["reasons"] == []
    for key in ("stat_ms", "model_ms", "bound95_ms"):
        assert len(answer["sigma"][key]) == 3
    assert {part["part"] for part in answer["sigma"]["systematic_ms"]} >= {"gyro_to_frame"}
    assert answer["sigma"]["total_ms"] > 15
    assert answer["streams"]["hl2_gyro"]["stamp"] == "vinyl_line"
    assert answer["streams"]["hl2_gyro"]["unit"]["name"] == "rad_per_s"
    assert answer["thresholds"]["rho_least"] == 0.25
    assert [len(entry["sha256"]) for entry in answer["inputs"]] == [64, 64]
    times = [row[0] for row in answer["samples"]]
    assert times == np.linspace(0, math.floor(pair.t_s[-1]) + 1, 31).tolist()
    truth = pair.truth_ticks(np.array(times))
    assert max(abs(row[1] - int(true)) for row, true in zip(answer["samples"], truth, strict=True)) < 3000


def test_samples_follow_from_the_map_alone(files):
    folder, _ = files
    answer = json.loads(align(folder, "g.npz", "--json").stdout)
    body = answer["map"]
    for t_s, ticks in answer["samples"]:
        tau = sum(c * (t_s - body["t_mid_s"]) ** k for k, c in enumerate(body["coef"]))
        assert answer["epoch_hl2_qpc"] + round(1e7 * (t_s + tau)) == pytest.approx(ticks, abs=1)


def test_a_prior_counts_from_its_epoch(files, trials):
    folder, pair = files
    media0 = int(pair.truth_ticks(np.zeros(1))[0])
    options = ["--epoch-ticks", str(trials.EPOCH_TICKS - 10**9), "--json"]
    x_s = (media0 - trials.EPOCH_TICKS + 10**9) / 1e7
    near = json.loads(
        align(folder, "g.npz", *options, "--prior-s", f"{x_s + 0.3}", "--prior-half-width-s", "2").stdout
    )
    assert near["status"] == "aligned"
    assert near["evidence"]["timestamps"]["source"] == "user"
    far = json.loads(
        align(folder, "g.npz", *options, "--prior-s", f"{x_s + 40}", "--prior-half-width-s", "2").stdout
    )
    assert far["status"] == "check"


def test_arrays_in_memory_give_what_their_files_give(files):
    folder, pair = files
    by_file = ks.align(folder / "h.npz", folder / "g.npz")
    headset = {"vinyl_ns": pair.vinyl_ns, "soc_ticks": pair.soc_ticks, "rad_per_s": pair.rad_per_s}
    by_array = ks.align(headset, {"t_s": pair.t_s, "rad_per_s": pair.camera.tolist()})
    assert [one["path"] for one in by_array["inputs"]] == ["hololens", "gopro"]
    assert by_array | {"inputs": None} == by_file | {"inputs": None}
    with pytest.raises(BadArrays, match="gopro: holds no array 't_s'"):
        ks.align(headset, {"rad_per_s": pair.camera})


def test_the_offset_is_printed(files):
    folder, pair = files
    printed = align(folder, "g.npz").stdout
    (tick,) = re.findall(r"second 0 of the camera is tick (\d+) of the headset", printed)
    (offset_s,) = re.findall(r"offset (-?[\d.]+) s", printed)
    assert abs(int(tick) - int(pair.truth_ticks(np.array([0.0]))[0])) < 3000
    assert abs((int(tick) - int(pair.soc_ticks[0])) / 1e7 - float(offset_s)) < 1.0  # since its first samples


@pytest.mark.parametrize("gopro", ["other.npz", "short.npz"])
def test_a_refusal_has_no_map_and_exit_code_one(files, gopro):
    folder, _ = files
    result = align(folder, gopro, "--json")
    assert result.exit_code == 1
    answer = json.loads(result.stdout)
    assert answer["status"] == "not_aligned"
    assert "map" not in answer
    assert answer["samples"] == []
    assert answer["reasons"]


@pytest.mark.slow
def test_people_get_words(files):
    folder, _ = files
    good, bad = align(folder, "g.npz"), align(folder, "other.npz")
    assert good.output.startswith("aligned")
    assert "ppm" in good.output
    assert bad.exit_code == 1
    assert bad.output.startswith("not_aligned")


def test_wrong_usage_is_two(files):
    folder, _ = files
    assert align(folder, "missing.npz").exit_code == 2
    assert align(folder, "g.npz", "--prior-half-width-s", "-1").exit_code == 2


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"t_s": np.arange(9.0)}, "no array 'rad_per_s'"),
        ({"t_s": np.arange(9.0), "rad_per_s": np.zeros((4, 3))}, "do not fit"),
        ({"t_s": np.zeros(9), "rad_per_s": np.zeros((9, 3))}, "only 1 usable"),
        ({"t_s": np.append(np.arange(9.0), 1e9), "rad_per_s": np.ones((10, 3))}, "stamps span 277778 hours"),
        ({"t_s": np.array(["a"]), "rad_per_s": np.zeros((1, 3))}, "not numbers"),
        ({"t_s": np.array([{}], dtype=object), "rad_per_s": np.zeros((1, 3))}, "not a readable"),
    ],
)
def test_wrong_arrays_are_one_line(files, tmp_path, arrays, message):
    folder, _ = files
    np.savez(tmp_path / "bad.npz", **arrays)
    result = CliRunner().invoke(
        main, ["align", "--hololens", str(folder / "h.npz"), "--gopro", str(tmp_path / "bad.npz")]
    )
    assert result.exit_code == 1
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_wrong_arrays_still_print_one_object_when_asked(files, tmp_path):
    folder, _ = files
    np.savez(tmp_path / "bad.npz", t_s=np.arange(9.0))
    result = align(folder, "g.npz", "--gopro", str(tmp_path / "bad.npz"), "--json")
    assert result.exit_code == 1
    answer = json.loads(result.stdout)
    assert (answer["schema"], answer["status"]) == ("align/1", "refused")
    assert "rad_per_s" in result.stderr


def test_a_file_that_is_no_archive_is_one_line(files, tmp_path):
    folder, _ = files
    (tmp_path / "text.npz").write_text("hello")
    result = align(folder, "g.npz", "--gopro", str(tmp_path / "text.npz"))
    assert result.exit_code == 1
    assert "text.npz" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_damaged_archive_is_bad_arrays_wherever_the_damage_is(tmp_path):
    whole, bad = tmp_path / "whole.npz", tmp_path / "bad.npz"
    np.savez_compressed(whole, vinyl_ns=np.arange(4000), soc_ticks=np.arange(4000))
    for at in range(70, 1500, 110):
        content = bytearray(whole.read_bytes())
        content[at] ^= 0x55
        bad.write_bytes(content)
        with pytest.raises(BadArrays, match=r"bad\.npz"):
            ks.align(bad, bad)
