"""Harmful JSON is refused with a message, within little time and memory."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest

from kitchensync.shell.files_on_disk import NotPlainFile
from kitchensync.shell.untrusted_json import BadJson, load_json, parse_json


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 70 + "1" + "}" * 70, "nested too deeply"),
        ("[" + "[]," * 600_000 + "1]", "more than 1000000 values"),
        ("[" + "1," * 1_000_000 + "1]", "more than 1000000 values"),
        ("1" * 26, "a number of 26 digits"),
        ("1e999", "too large for a number"),
        ("[NaN]", "NaN is not a JSON number"),
        ("-Infinity", "not a JSON number"),
        ('"' * 1_000_001, "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b" " * (17 << 20), "at most"),
    ],
)
def test_harmful_documents_are_refused(text, why):
    with pytest.raises(BadJson, match=why):
        parse_json(text)


def test_brackets_and_commas_inside_strings_do_not_count():
    held = ["[{" * 100, ',"\\' * 100, {"a": ["]" * 100]}]
    assert parse_json(json.dumps(held)) == held


def test_other_documents_are_read_like_by_the_standard_library():
    draw = random.Random(1)

    def random_value(depth):
        kind = draw.randrange(5 if depth else 3)
        if kind < 3:
            return [draw.getrandbits(60), draw.random(), '"[\\,{' * draw.randrange(4)][kind]
        values = [random_value(depth - 1) for _ in range(draw.randrange(40))]
        return values if kind == 3 else {str(number): value for number, value in enumerate(values)}

    for _ in range(200):
        text = json.dumps(random_value(3))
        assert parse_json(text, most_items=10**6) == json.loads(text)


def test_a_file_that_is_a_link_or_a_pipe_is_refused_by_name(tmp_path):
    (tmp_path / "plain").write_text("[1]")
    assert load_json(tmp_path / "plain") == [1]
    (tmp_path / "link").symlink_to(tmp_path / "plain")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(NotPlainFile, match=f"a {name}, not a file"):
            load_json(tmp_path / name)
    with pytest.raises(NotPlainFile, match="a device, not a file"):
        load_json(Path("/dev/null"))
