"""Gyroscope alignment on pairs whose clock map is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kitchensync.storage.timeline.stamps import StampLine, repair_stamps
from kitchensync.sync.align.gyro import align_pair
from kitchensync.sync.align.headset_gyro import HeadsetGyro, headset_gyro, in_blocks
from kitchensync.sync.align.prior import Prior
from kitchensync.sync.fit.resample import decimate, make_track

pytestmark = pytest.mark.slow

REAL = ["ear_normal_right", "ear_slow_left", "ear_fast_right"]
HALF_FRAME_MS = 16.7


def prepare(pair):
    headset = headset_gyro(
        in_blocks(pair.vinyl_ns, pair.rad_per_s), repair_stamps(pair.vinyl_ns, pair.soc_ticks)
    )
    return headset, make_track("camera", pair.t_s, pair.camera)


def largest_error_ms(found, pair):
    """Truth and claim compared at 31 times, whole seconds beyond the ends included."""
    times = np.linspace(0.0, np.floor(pair.t_s[-1]) + 1.0, 31)
    return np.abs(found.clock_map.to_ticks(times) - pair.truth_ticks(times)).max() / 1e4


def simulated(trials, seed, *, setting=None, rms_deg=35.0):
    setting = setting or trials.Setting()
    rng = np.random.default_rng(seed)
    motion = trials.simulated_motion(rng, setting.seconds, rms_deg=rms_deg)
    return trials.make_pair(motion, motion, rng, setting)


@pytest.mark.parametrize("seed", range(3))
def test_a_simulated_minute_is_aligned_within_a_fifth_of_a_millisecond(trials, seed):
    pair = simulated(trials, seed)
    found = align_pair(*prepare(pair))
    assert (found.verdict.status, found.verdict.reasons) == ("aligned", ())
    assert largest_error_ms(found, pair) < 0.2
    assert largest_error_ms(found, pair) < max(found.bound95_ms)


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("seed", range(2))
def test_a_real_minute_is_aligned_within_half_a_millisecond(trials, shared_data, name, seed):
    motion, length_s = trials.real_motion(shared_data("motion/real_gyro.npz").parent.parent, name)
    rng = np.random.default_rng([seed, len(name)])
    pair = trials.make_pair(motion, motion, rng, trials.Setting(), rng.uniform(2.0, length_s - 66.0))
    found = align_pair(*prepare(pair))
    assert (found.verdict.status, found.verdict.reasons) == ("aligned", ())
    assert largest_error_ms(found, pair) < 0.5


@pytest.mark.parametrize(
    ("degrees", "name", "scale"), [(True, "deg_per_s", 180 / np.pi), (False, "rad_per_s", 1)]
)
def test_the_unit_is_found_with_its_evidence(trials, degrees, name, scale):
    pair = simulated(trials, 7, setting=trials.Setting(degrees=degrees))
    found = align_pair(*prepare(pair))
    assert (found.unit.name, found.unit.source) == (name, "measured")
    assert found.unit.scale == pytest.approx(scale, rel=0.01)


def test_a_unit_that_was_set_is_kept_and_doubted_when_wrong(trials):
    pair = simulated(trials, 7)
    found = align_pair(*prepare(pair), unit="rad_per_s")
    assert (found.unit.name, found.unit.source) == ("rad_per_s", "setting")
    assert found.verdict.status == "check"
    assert "factor of 57" in found.verdict.reasons[0]


def unrepaired(pair):
    """What a reader without stamp repair would align: every sample where its batch's stamp says."""
    ticks = pair.soc_ticks
    line = StampLine(0, 0, int(ticks[0]), int(ticks[0]), 0.0, 1.0)
    repair = replace(repair_stamps(pair.vinyl_ns, ticks), lines=(line,))
    since_s = (ticks - ticks[0]) / 1e7
    spread_s = since_s + 1e-9 * np.arange(len(ticks))  # stamps must rise; a nanosecond each moves nothing
    return HeadsetGyro(int(ticks[0]), decimate(iter([(spread_s, pair.rad_per_s)]), 315), repair)


@pytest.mark.parametrize("seed", range(3))
def test_left_out_stamp_repair_is_23_ms_wrong_under_a_happy_status(trials, seed):
    """Why the repair exists: no correlation can see a constant shift, so nothing but this test would tell."""
    pair = simulated(trials, seed)
    camera = make_track("camera", pair.t_s, pair.camera)
    happy = align_pair(unrepaired(pair), camera)
    assert happy.verdict.status == "aligned"
    assert 22.0 < largest_error_ms(happy, pair) < 26.0
    assert largest_error_ms(align_pair(*prepare(pair)), pair) < 0.2


def test_lost_batches_cost_nothing(trials):
    pair = simulated(trials, 5, setting=trials.Setting(lost=0.05))
    headset, camera = prepare(pair)
    found = align_pair(headset, camera)
    assert headset.repair.lost_batches > 20
    assert found.verdict.status == "aligned"
    assert largest_error_ms(found, pair) < 0.3


def test_a_gap_of_ten_seconds_is_masked(trials):
    pair = simulated(trials, 6)
    seconds = (pair.true_ticks - pair.true_ticks[0]) / 1e7
    keep = (seconds < 20) | (seconds > 30)
    batch_keep = np.repeat(keep[:: trials.BATCH], trials.BATCH)
    cut = replace(
        pair,
        vinyl_ns=pair.vinyl_ns[batch_keep],
        soc_ticks=pair.soc_ticks[batch_keep],
        rad_per_s=pair.rad_per_s[batch_keep],
    )
    found = align_pair(*prepare(cut))
    assert found.verdict.status == "aligned"
    assert largest_error_ms(found, pair) < 0.3


def test_a_camera_that_ran_for_the_last_third_only(trials):
    pair = simulated(trials, 8, setting=trials.Setting(seconds=180.0))
    late = pair.t_s > 120
    found = align_pair(prepare(pair)[0], make_track("camera", pair.t_s[late], pair.camera[late]))
    assert found.verdict.status == "aligned"
    assert found.clock_map.valid_s[0] > 119
    times = np.array([120.0, 178.0])
    assert np.abs(found.clock_map.to_ticks(times) - pair.truth_ticks(times)).max() < 3000


@pytest.mark.parametrize("seed", range(4))
def test_unrelated_recordings_are_refused(trials, seed):
    rng = np.random.default_rng(seed)
    motions = [trials.simulated_motion(rng, 60.0) for _ in range(2)]
    found = align_pair(*prepare(trials.make_pair(*motions, rng, trials.Setting())))
    assert found.verdict.status == "not_aligned"
    assert found.clock_map is None
    assert found.unit.name == "undecided"
    assert found.verdict.reasons


def test_two_people_walking_are_refused(trials, shared_data):
    data = shared_data("motion/real_gyro.npz").parent.parent
    one, other = (trials.real_motion(data, name)[0] for name in ("ear_normal_right", "fusion_hand"))
    pair = trials.make_pair(one, other, np.random.default_rng(3), trials.Setting(), 20.0)
    assert align_pair(*prepare(pair)).verdict.status == "not_aligned"


def test_devices_on_a_table_are_refused(trials):
    rng = np.random.default_rng(1)
    motion = trials.still(rng, 60.0)
    found = align_pair(*prepare(trials.make_pair(motion, motion, rng, trials.Setting())))
    assert found.verdict.status == "not_aligned"


def test_periodic_motion_is_refused_unless_the_clocks_can_choose(trials):
    rng = np.random.default_rng(2)
    motion = trials.walking_in_place(rng, 60.0)
    pair = trials.make_pair(motion, motion, rng, trials.Setting())
    headset, camera = prepare(pair)
    alone = align_pair(headset, camera)
    assert alone.verdict.status == "not_aligned"
    assert "periodic" in alone.verdict.reasons[0]
    true_s = (int(pair.truth_ticks(np.zeros(1))[0]) - headset.epoch_ticks) / 1e7
    good = align_pair(headset, camera, prior=Prior(true_s + 0.1, 0.1, 6.0, "test"))
    assert good.verdict.status == "aligned"
    assert "clocks chose" in good.verdict.warnings[0]
    assert largest_error_ms(good, pair) < 0.5
    vague = align_pair(headset, camera, prior=Prior(true_s + 0.1, 1.0, 6.0, "test"))
    assert vague.verdict.status == "not_aligned"


@pytest.mark.parametrize("seed", range(6))
def test_ten_seconds_of_little_motion_are_claimed_no_better_than_they_are(trials, seed):
    pair = simulated(trials, seed, setting=trials.Setting(seconds=12.0, offset_s=0.5), rms_deg=1.0)
    found = align_pair(*prepare(pair))
    assert found.fine.is_whole
    if found.verdict.status != "not_aligned":
        assert largest_error_ms(found, pair) < max(found.bound95_ms) < HALF_FRAME_MS


def test_a_minute_with_nominal_stamps_is_rescued_where_a_few_seconds_fit_by_chance(trials):
    """A short overlap at the wrong end agrees to 0.9: only the rest of the minute tells that it runs away."""
    setting = trials.Setting(camera_rate=1.0084)
    pair = trials.simulated(setting)(np.random.default_rng([3, sum(b"60 s, nominal stamps")]))
    found = align_pair(*prepare(pair))
    assert found.verdict.status == "check"
    assert largest_error_ms(found, pair) < max(found.bound95_ms)


def test_the_bound_speaks_for_all_that_is_handed_out(trials):
    """A camera that began half a minute before the headset: there the drift is carried on, and may be wrong."""
    pair = simulated(trials, 14, setting=trials.Setting(seconds=90.0))
    late = pair.true_ticks > pair.true_ticks[0] + 30 * 10**7
    late = np.repeat(late[:: trials.BATCH], trials.BATCH)
    cut = replace(
        pair,
        vinyl_ns=pair.vinyl_ns[late],
        soc_ticks=pair.soc_ticks[late],
        rad_per_s=pair.rad_per_s[late],
    )
    found = align_pair(*prepare(cut))
    start, _, end = found.stat_ms
    assert start > end
    assert largest_error_ms(found, pair) < max(found.bound95_ms)


def test_two_seconds_are_too_short_to_say_anything(trials):
    from kitchensync.sync.errors import TooShort

    pair = simulated(trials, 1)
    with pytest.raises(TooShort, match=r"camera gyroscope lasts 2\.\d+ s, at least 3 s"):
        align_pair(prepare(pair)[0], make_track("camera", pair.t_s[:480], pair.camera[:480]))


@pytest.mark.parametrize("rate", [1.0084, 0.9876])
def test_nominal_camera_stamps_are_rescued_and_marked(trials, rate):
    pair = simulated(trials, 4, setting=trials.Setting(camera_rate=rate, seconds=120.0))
    found = align_pair(*prepare(pair))
    assert found.verdict.status == "check"
    assert "nominal" in found.verdict.reasons[0]
    assert largest_error_ms(found, pair) < 0.5


def test_stamps_300_ppm_off_are_marked(trials):
    pair = simulated(trials, 4, setting=trials.Setting(camera_rate=1.0003, seconds=120.0))
    found = align_pair(*prepare(pair))
    assert found.verdict.status == "check"
    assert largest_error_ms(found, pair) < 0.5


def test_two_ears_of_one_person_with_nominal_stamps(trials, shared_data):
    """A real pair, n/200 s on both sides; their rates are known to differ by 8,400 ppm."""
    with np.load(shared_data("motion/real_gyro.npz")) as archive:
        left, right = (
            make_track(s, archive[f"ear_slow_{s}_t"], archive[f"ear_slow_{s}_w"]) for s in ("left", "right")
        )
    ticks = np.rint(left.t_s * 1e7).astype(np.int64)
    headset = HeadsetGyro(0, left, repair_stamps(ticks * 100, ticks))
    found = align_pair(headset, right)
    assert found.verdict.status == "check"
    assert abs(found.fine.line.drift * 1e6) == pytest.approx(8420, abs=60)


def with_jump(pair, size_s, at_s):
    shifted = pair.t_s + size_s * (pair.t_s > at_s)
    return replace(pair, t_s=shifted)


@pytest.mark.parametrize("size_s", [0.010, 0.025])
def test_a_jump_of_the_camera_clock_is_noticed(trials, size_s):
    pair = simulated(trials, 9, setting=trials.Setting(seconds=180.0))
    found = align_pair(*prepare(with_jump(pair, size_s, 90.0)))
    assert found.verdict.status == "check"
    assert any("jump" in reason for reason in found.verdict.reasons)
    [(at, size)] = found.clock_map.jumps
    assert abs(size) == pytest.approx(size_s, abs=1e-4)
    assert at == pytest.approx(90.0, abs=0.1)


@pytest.mark.parametrize("seed", [10054, 10068, 30020, 30058])
def test_a_few_short_windows_are_no_jump(trials, seed):
    """Twelve seconds of little motion: three windows of a second and a half looked like a jump of up to 184 ms."""
    setting = trials.Setting(seconds=12.0, offset_s=0.5)
    pair = trials.simulated(setting, 2.0)(np.random.default_rng([seed, sum(b"12 s of little motion")]))
    found = align_pair(*prepare(pair))
    assert found.clock_map.jumps == ()
    assert largest_error_ms(found, pair) < max(found.bound95_ms) < HALF_FRAME_MS


@pytest.mark.parametrize(("size_s", "at_s"), [(0.005, 30.0), (0.020, 12.0), (-0.030, 45.0)])
def test_a_jump_within_a_minute_is_still_found(trials, size_s, at_s):
    pair = simulated(trials, 11)
    shifted = with_jump(pair, size_s, at_s)
    found = align_pair(*prepare(shifted))
    assert found.verdict.status == "check"
    [(at, size)] = found.clock_map.jumps
    assert size == pytest.approx(-size_s, abs=2e-4)
    assert at == pytest.approx(at_s, abs=0.1)


def test_a_camera_that_turned_on_the_head_is_noticed(trials):
    pair = simulated(trials, 10)
    turned = pair.camera.copy()
    half = len(turned) // 2
    turned[half:, :2] = turned[half:, :2] @ np.array([[0.94, 0.342], [-0.342, 0.94]])  # 20 degrees
    found = align_pair(prepare(pair)[0], make_track("camera", pair.t_s, turned))
    assert found.verdict.status == "check"
    assert any("turned by" in reason for reason in found.verdict.reasons)


def test_a_head_that_hardly_moves_is_not_said_to_have_turned(trials):
    """Both halves of twelve quiet seconds know their rotation to degrees only."""
    setting = trials.Setting(seconds=12.0, offset_s=0.5)
    pair = trials.simulated(setting, 2.0)(np.random.default_rng([17, sum(b"12 s of little motion")]))
    found = align_pair(*prepare(pair))
    assert found.fine.turn_deg > 6.0
    assert found.verdict.status == "aligned"
    assert largest_error_ms(found, pair) < max(found.bound95_ms)


def test_clocks_that_disagree_with_the_motion_are_named(trials):
    pair = simulated(trials, 11)
    headset, camera = prepare(pair)
    true_s = (int(pair.truth_ticks(np.zeros(1))[0]) - headset.epoch_ticks) / 1e7
    found = align_pair(headset, camera, prior=Prior(true_s + 30.0, 0.5, 6.0, "test"))
    assert found.verdict.status == "check"
    assert "30.0" in found.verdict.reasons[0]
    assert largest_error_ms(found, pair) < 0.3


def test_the_answer_is_the_same_on_every_run(trials):
    pair = simulated(trials, 12)
    one, two = (align_pair(*prepare(pair)) for _ in range(2))
    assert one.clock_map == two.clock_map
    assert one.bound95_ms == two.bound95_ms


def test_the_generator_cuts_both_sides_from_one_motion(trials):
    """The judge is judged: a camera sample equals the headset's motion at the tick that the truth names."""
    rng = np.random.default_rng(0)
    motion = trials.simulated_motion(rng, 20.0)
    pair = trials.make_pair(
        motion, motion, rng, trials.Setting(seconds=20.0, headset_noise=0.0, camera_noise=0.0)
    )
    seconds = (pair.true_ticks - trials.EPOCH_TICKS) / 1e7
    at = (pair.truth_ticks(pair.t_s) - trials.EPOCH_TICKS) / 1e7
    inside = (at > seconds[0]) & (at < seconds[-1])
    sizes = [np.interp(at[inside], seconds, pair.rad_per_s[:, k]) for k in range(3)]
    headset = np.linalg.norm(np.stack(sizes, axis=1) / trials.DEGREES, axis=1)
    camera = np.linalg.norm(pair.camera[inside], axis=1)
    assert np.abs(headset - camera).max() < 0.05


def test_data_of_the_bench_is_found_where_it_is_told(trials, tmp_path):
    assert "unrelated, real" not in trials.classes(Path(tmp_path))
