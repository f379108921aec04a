"""Splits: the published lists again, the rules for other data by brute force, and what is said of each."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import made_data_sets
import pytest
from typed_commands import typed as run

from kitchensync.dataset.splits.rule import Divided, Rule, divide
from kitchensync.dataset.splits.split_kinds import PARTS, NoSuchSplit
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording

RATIO = (Fraction("0.6"), Fraction("0.2"), Fraction("0.2"))


@pytest.mark.parametrize("kind", ["environment", "person", "recordings", "recipes"])
def test_the_published_rule_gives_the_published_lists(
    shared_data: Callable[[str], Path], tmp_path: Path, kind: str
) -> None:
    folder = shared_data("captaincook4d")
    expected = json.loads((shared_data("captaincook4d-derived") / "expected.json").read_text())["splits"]
    done = run("release", "split", folder, "--kind", kind, "--out", tmp_path / "out", "--json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    for which in ("combined", "normal"):
        name = f"{kind}_data_split_{which}.json"
        made = json.loads((tmp_path / "out" / name).read_text())
        published = json.loads((folder / "data_splits" / name).read_text())
        assert {part: set(ids) for part, ids in made.items()} == {p: set(ids) for p, ids in published.items()}
        assert list(made) == list(PARTS)
    assert said["rule"] == {"name": "published"}
    if kind != "recipes":
        want = expected[f"{kind}_combined"]
        numbers = said["parts"]
        assert {part: numbers[part]["recordings"] for part in PARTS} == want["sizes"]
        assert {part: numbers[part]["with_errors"] for part in PARTS} == want["with_errors"]
        assert (said["disjoint"], said["complete"]) == (True, True)
        assert sum(part["hours"] for part in numbers.values()) == pytest.approx(57.7975, abs=2e-4)
        assert not any(said["shared"].values())


def test_the_published_steps_are_cut_in_entry_order(
    shared_data: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = shared_data("captaincook4d")
    done = run("release", "split", folder, "--kind", "steps", "--out", tmp_path, "--json")
    assert done.exit_code == 0
    assert any("--corrected --seed N shuffles" in line for line in json.loads(done.stdout)["warnings"])
    made = json.loads((tmp_path / "steps_data_split_combined.json").read_text())
    for one in json.loads((folder / "annotation_json/error_annotations.json").read_text()):
        wanted: dict[str, set[int]] = defaultdict(set)
        for wrong in (False, True):
            places = [n for n, step in enumerate(one["step_annotations"]) if ("errors" in step) == wrong]
            first, second = int(len(places) * 0.75), int(len(places) * 0.91)
            wanted["train"] |= set(places[:first])
            wanted["test"] |= set(places[first:second])
            wanted["val"] |= set(places[second:])
        assert {part: set(made[part][one["recording_id"]]) for part in PARTS} == dict(wanted)


def test_a_corrected_split_of_steps_is_shuffled_by_its_seed(
    shared_data: Callable[[str], Path], tmp_path: Path
) -> None:
    made = []
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        words = ("--kind", "steps", "--corrected", "--seed", seed, "--out", tmp_path / name, "--strict")
        assert run("release", "split", shared_data("captaincook4d"), *words).exit_code == 0
        made.append(json.loads((tmp_path / name / "steps_data_split_combined.json").read_text()))
    assert made[0] == made[1] != made[2]
    for recording, places in made[0]["train"].items():
        every = sorted(place for part in PARTS for place in made[0][part][recording])
        assert every == list(range(len(every)))
        assert len(places) == len(made[2]["train"][recording])
    folder = shared_data("captaincook4d")
    for words in (("steps", "--corrected"), ("person", "--corrected", "--seed", "1")):
        assert run("release", "split", folder, "--kind", *words, "--out", tmp_path / "d").exit_code == 2


def parts_of(kind: str, made: list[AnnotatedRecording], rule: Rule) -> Divided | None:
    try:
        return divide(kind, made, rule)
    except NoSuchSplit:
        return None


def test_the_supplement_s_environment_rule_holds_for_200_made_sets() -> None:
    refused = balanced = 0
    for seed in range(200):
        made = made_data_sets.recordings(seed)
        found = parts_of("environment", made, Rule("supplement", seed=seed))
        sizes = Counter(one.environment for one in made)
        if found is None:
            assert len(sizes) == 1
            refused += 1
            continue
        by_id = {one.recording_id: one for one in made}
        assert sorted(one for ids in found.parts.values() for one in ids) == sorted(by_id)
        train, val, test = ({by_id[one].environment for one in found.parts[part]} for part in PARTS)
        assert not test & (train | val)
        assert val <= train
        assert {kitchen for kitchen in train if sizes[kitchen] > 1} == val
        assert len(train) == min(5, len(sizes) - 1)
        assert min(sizes[kitchen] for kitchen in train) >= max(sizes[kitchen] for kitchen in test)
        for is_error in (False, True):
            ours = [one for one in made if one.environment in train and one.is_error == is_error]
            drawn = [one for one in found.parts["val"] if by_id[one].is_error == is_error]
            assert abs(len(drawn) - len(ours) // 4) <= len(train)
            balanced += len(drawn) == len(ours) // 4
    assert refused < 40
    assert balanced > 200


def test_the_supplement_s_person_rule_holds_for_200_made_sets() -> None:
    refused = 0
    for seed in range(200):
        made = made_data_sets.recordings(seed)
        found = parts_of("person", made, Rule("supplement", seed=seed))
        recipes = {one.activity_id for one in made}
        complete = {
            person
            for person in {one.person_id for one in made}
            if {one.activity_id for one in made if one.person_id == person} == recipes
        }
        others = {one.person_id for one in made} - complete
        if found is None:
            assert not complete or not others
            refused += 1
            continue
        assert sorted(one for ids in found.parts.values() for one in ids) == sorted(
            o.recording_id for o in made
        )
        by_id = {one.recording_id: one.person_id for one in made}
        train, val, test = ({by_id[one] for one in found.parts[part]} for part in PARTS)
        assert test == complete
        assert train | val == others
        assert not train & val
        assert train
        assert val or len(others) == 1
    assert refused < 100


@pytest.mark.parametrize("kind", ["recordings", "environment", "person", "recipes", "type"])
def test_a_ratio_and_a_seed_give_the_same_disjoint_parts_again(kind: str) -> None:
    differing = 0
    for seed in range(200):
        made = made_data_sets.recordings(seed)
        found = parts_of(kind, made, Rule("ratio", ratio=RATIO, seed=seed))
        if found is None:
            groups = {one.environment if kind == "environment" else one.person_id if kind == "person"
                      else one.activity_id for one in made}  # fmt: skip
            assert len(groups) < 3
            continue
        assert divide(kind, made[::-1], Rule("ratio", ratio=RATIO, seed=seed)) is not None
        assert found == divide(kind, made, Rule("ratio", ratio=RATIO, seed=seed))
        differing += found.parts != divide(kind, made, Rule("ratio", ratio=RATIO, seed=seed + 1)).parts
        held = [one for ids in found.parts.values() for one in ids]
        assert len(held) == len(set(held))
        whole = {one.recording_id for one in made}
        wrong = {one.recording_id for one in made if one.is_error}
        assert whole - set(held) <= (wrong if kind == "type" else set())
        if kind == "type":
            assert not wrong & set(found.parts["train"])
        if kind == "recordings":
            for part, share in zip(PARTS, RATIO, strict=True):
                assert abs(len(found.parts[part]) - len(made) * share) < 2
    assert differing > 0


def own(folder: Path, made: list[AnnotatedRecording], displays: dict[str, str]) -> Path:
    lines = [{"recording_id": one.recording_id, "kind": "recording",
              "display": displays.get(one.recording_id, "hidden")} for one in made]  # fmt: skip
    made_data_sets.write(folder, made, beside="".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_a_lab_s_own_data_never_get_the_published_rule(tmp_path: Path) -> None:
    folder = own(tmp_path / "set", made_data_sets.recordings(5), {})
    done = run("release", "split", folder, "--kind", "environment", "--out", tmp_path / "out")
    assert (done.exit_code, (tmp_path / "out").exists()) == (2, False)
    assert "--ratio and --seed" in done.stderr


def test_a_test_part_in_step_display_is_listed_and_one_without_other_displays_warned_of(
    tmp_path: Path,
) -> None:
    made = made_data_sets.recordings(7)
    folder = own(tmp_path / "set", made, {one.recording_id: "steps" for one in made})
    options = ["--kind", "recordings", "--ratio", "0.5,0.2,0.3", "--seed", "3"]
    done = run("release", "split", folder, *options, "--out", tmp_path / "a", "--json")
    said = json.loads(done.stdout)
    test = json.loads((tmp_path / "a" / "recordings_data_split_combined.json").read_text())["test"]
    assert (done.exit_code, said["status"], said["test_in_step_display"]) == (0, "WARN", test)
    assert any("no test recording is in paragraph or hidden display" in line for line in said["warnings"])
    assert run("release", "split", folder, *options, "--out", tmp_path / "b", "--strict").exit_code == 1
    own(folder, made, dict.fromkeys(test[1:], "steps") | {test[0]: "paragraph"})
    said = json.loads(run("release", "split", folder, *options, "--out", tmp_path / "c", "--json").stdout)
    assert said["test_in_step_display"] == test[1:]
    assert not any("no test recording" in line for line in said["warnings"])
    assert said["parts"]["test"]["displays"]["paragraph"] == 1


def rule_file(tmp_path: Path, rule: dict[str, list[Any]]) -> Path:
    (tmp_path / "rule.json").write_text(json.dumps(rule))
    return tmp_path / "rule.json"


def test_a_rule_that_leaks_into_the_test_part_writes_nothing(tmp_path: Path) -> None:
    made = made_data_sets.recordings(7)
    folder = own(tmp_path / "set", made, {})
    persons = sorted({one.person_id for one in made})
    rule = rule_file(tmp_path, {"train": persons, "val": [], "test": persons[:1]})
    done = run(
        "release", "split", folder, "--kind", "person", "--rule", rule, "--out", tmp_path / "o", "--json"
    )
    said = json.loads(done.stdout)
    assert (done.exit_code, said["status"], said["disjoint"], said["complete"]) == (1, "FAIL", False, True)
    assert said["shared"]["train,test"] == persons[:1]
    assert (said["written"], (tmp_path / "o").exists()) == ([], False)
    rule = rule_file(tmp_path, {"train": persons[1:], "val": [], "test": []})
    done = run(
        "release", "split", folder, "--kind", "person", "--rule", rule, "--out", tmp_path / "o", "--json"
    )
    said = json.loads(done.stdout)
    assert (done.exit_code, said["complete"]) == (1, False)
    assert set(said["left_out"]) == {one.recording_id for one in made if one.person_id == persons[0]}


def test_skill_groups_of_recipes_come_from_a_file_by_name_or_number(tmp_path: Path) -> None:
    made = made_data_sets.recordings(1)
    folder = own(tmp_path / "set", made, {})
    first, *rest = sorted({one.activity_id for one in made})
    rule = rule_file(tmp_path, {"train": [f"Recipe {one}" for one in rest], "test": [first]})
    done = run("release", "split", folder, "--kind", "recipes", "--rule", rule, "--out", tmp_path / "o")
    assert done.exit_code == 0, done.output
    parts = json.loads((tmp_path / "o" / "recipes_data_split_combined.json").read_text())
    assert set(parts["test"]) == {one.recording_id for one in made if one.activity_id == first}
    normal = json.loads((tmp_path / "o" / "recipes_data_split_normal.json").read_text())
    wrong = {one.recording_id for one in made if one.is_error}
    assert {part: [one for one in ids if one not in wrong] for part, ids in parts.items()} == normal


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--ratio", "0.6,0.3,0.2", "--seed", "1"], 2, "add up to 1"),
        (["--ratio", "0.6,0.2,0.2"], 2, "give --seed"),
        (["--rule", "supplement"], 2, "give --seed"),
        (["--rule", "nowhere.json"], 2, "no such file"),
        (["--rule", "supplement", "--ratio", "1,0,0", "--seed", "1"], 2, "give one of them"),
        (["--rule", "RULE"], 1, "no recording has it"),
    ],
)
def test_a_rule_that_cannot_be_is_refused_in_one_line(
    tmp_path: Path, words: list[str], code: int, said: str
) -> None:
    folder = own(tmp_path / "set", made_data_sets.recordings(7), {})
    rule = rule_file(tmp_path, {"train": [99]})
    words = [str(rule) if word == "RULE" else word for word in words]
    done = run("release", "split", folder, "--kind", "person", *words, "--out", tmp_path / "o")
    assert (done.exit_code, (tmp_path / "o").exists()) == (code, False)
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_kitchens_that_train_and_val_share_by_the_rule_are_said_and_no_fault(tmp_path: Path) -> None:
    made = made_data_sets.recordings(3)
    folder = own(tmp_path / "set", made, {})
    options = [
        "--kind",
        "environment",
        "--rule",
        "supplement",
        "--seed",
        "2",
        "--out",
        tmp_path / "o",
        "--json",
    ]
    done = run("release", "split", folder, *options)
    said = json.loads(done.stdout)
    assert (done.exit_code, said["status"], said["rule"]) == (0, "PASS", {"name": "supplement", "seed": 2})
    parts = json.loads((tmp_path / "o" / "environment_data_split_combined.json").read_text())
    kitchens = {one.recording_id: one.environment for one in made}
    both = {kitchens[one] for one in parts["train"]} & {kitchens[one] for one in parts["val"]}
    assert said["shared"] == {"train,val": sorted(both, key=str), "train,test": [], "val,test": []}
    assert "train and val share environment" in said["notes"][0]
