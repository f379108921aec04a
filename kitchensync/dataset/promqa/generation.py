"""Questions and answers that a model writes about an example: what it is told, what is taken of what it says.

What it says is text and nothing else: three candidates in one form are read, whatever else stands there is no
candidate. Everything is kept, one candidate is drawn by a seed.
"""

from __future__ import annotations

import random

from kitchensync.dataset.promqa.questions import TAGS, Generation, PromqaExample, QuestionAnswers, ToldStep
from kitchensync.shell.untrusted_json import BadJson, parse_json

CANDIDATES = 3
MOST_TEXT, MOST_ANSWERS = 600, 10
TEMPLATE = "step-target"
_ABOUT = {
    "next": "what can be done next",
    "missing": "whether a step was left out so far, and which",
    **{kind: f"whether something about {kind} went wrong in the last step" for kind in TAGS},
}
SCHEMA = {
    "type": "object",
    "properties": {
        "candidates": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "question": {"type": "string"},
                    "answers": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["question", "answers"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["candidates"],
    "additionalProperties": False,
}


def prompt_of(example: PromqaExample) -> str:
    """Return what a model is told: recipe, steps with their errors, what is true; nothing of people, no picture."""
    if "error_description" in example:
        known = f"that this went wrong ({example['type']}): {example['error_description']}"
    elif example["type"] == "next":
        known = "; ".join(step["description"] for step in example["next_steps"])
        known = f"that these steps can be done next: {known}" if known else "that this is the last step."
    else:
        known = "; ".join(step["description"] for step in example["missing_steps"])
        known = f"that these steps were left out: {known}" if known else "that no step is missing."
    lines = [
        f"Somebody cooks {example['activity_name']} and asks a friend who watches.",
        "The person completed these steps:",
        *(_told(step) for step in example["previous_steps"]),
        "The person has just performed this step:",
        _told(example["current_step"]),
        f"The friend knows {known}",
        f"Write {CANDIDATES} questions of the person about {_ABOUT[example['type']]}, in everyday words, each with "
        "one or more short answers of the friend that say nothing beyond what the friend knows.",
        'Answer with JSON alone: {"candidates": [{"question": "..", "answers": [".."]}, ..]}.',
    ]
    return "\n".join(lines)


def _told(step: ToldStep) -> str:
    errors = "".join(f"\n    - [{one['tag']}] {one['description']}" for one in step.get("errors", ()))
    return f"- {step['description']}{errors}"


def candidates_of(text: str) -> list[QuestionAnswers]:
    """Return the candidates that a model wrote. Raises ValueError for anything but three of them in the form."""
    try:
        found = parse_json(text)
    except BadJson as error:
        raise ValueError(f"is {error}") from error
    listed = found.get("candidates") if isinstance(found, dict) else None
    if not isinstance(listed, list) or len(listed) != CANDIDATES:
        raise ValueError(f"has not {CANDIDATES} candidates")
    candidates: list[QuestionAnswers] = []
    for one in listed:
        if not isinstance(one, dict) or set(one) != {"question", "answers"}:
            raise ValueError("has a candidate that is not a question with answers")
        answers = one["answers"]
        if not isinstance(answers, list) or not 1 <= len(answers) <= MOST_ANSWERS:
            raise ValueError(f"has not 1 to {MOST_ANSWERS} answers")
        for text in (one["question"], *answers):
            if (
                not isinstance(text, str)
                or not text.strip()
                or len(text) > MOST_TEXT
                or not text.isprintable()
            ):
                raise ValueError(f"has a text that is not one line of at most {MOST_TEXT} characters")
        unlike = list(dict.fromkeys(map(str.strip, answers)))
        candidates.append({"question": one["question"].strip(), "answers": unlike})
    return candidates


def generated(
    example: PromqaExample, prompt: str, response: str | None, model: str, seed: int
) -> PromqaExample:
    """Return an example with everything that was said, and the candidate that the seed draws, to be verified.

    Without an answer, or with one that is not in the form, it has no question. Keys as published.
    """
    kept: Generation = {
        "prompt": prompt,
        "response": response,
        "model_id": model,
        "template_type": TEMPLATE,
        "qas": [],
    }
    row: PromqaExample = {**example, "generation": kept}
    if response is None:
        return row
    try:
        kept["qas"] = candidates_of(response)
    except ValueError as error:
        kept["refused"] = str(error)
        return row
    drawn = random.Random(f"{seed} {example['question_id']}").choice(kept["qas"])
    row["verification"] = {**drawn, "judges": []}
    return row
