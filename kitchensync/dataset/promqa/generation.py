"""Questions and answers that a model writes about an example: its prompt, and the candidates parsed from its reply.

The reply is untrusted text: only three candidates in the expected form are accepted. The whole reply is kept, and a
seed draws one candidate.
"""

from __future__ import annotations

import random

from kitchensync.dataset.promqa.questions import TAGS, ExampleStep, Generation, PromqaExample, QuestionAnswers
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
    """Return the prompt: recipe, steps with their errors, and the right answer; nothing about people, no image."""
    if "error_description" in example:
        fact = f"that this went wrong ({example['type']}): {example['error_description']}"
    elif example["type"] == "next":
        steps = "; ".join(step["description"] for step in example["next_steps"])
        fact = f"that these steps can be done next: {steps}" if steps else "that this is the last step."
    else:
        steps = "; ".join(step["description"] for step in example["missing_steps"])
        fact = f"that these steps were left out: {steps}" if steps else "that no step is missing."
    lines = [
        f"Somebody cooks {example['activity_name']} and asks a friend who watches.",
        "The person completed these steps:",
        *(_step_line(step) for step in example["previous_steps"]),
        "The person has just performed this step:",
        _step_line(example["current_step"]),
        f"The friend knows {fact}",
        f"Write {CANDIDATES} questions of the person about {_ABOUT[example['type']]}, in everyday words, each with "
        "one or more short answers of the friend that say nothing beyond what the friend knows.",
        'Answer with JSON alone: {"candidates": [{"question": "..", "answers": [".."]}, ..]}.',
    ]
    return "\n".join(lines)


def _step_line(step: ExampleStep) -> str:
    errors = "".join(f"\n    - [{error['tag']}] {error['description']}" for error in step.get("errors", ()))
    return f"- {step['description']}{errors}"


def candidates_of(text: str) -> list[QuestionAnswers]:
    """Return the candidates in a reply. Raises ValueError unless there are exactly three in the expected form."""
    try:
        reply = parse_json(text)
    except BadJson as error:
        raise ValueError(f"is {error}") from error
    listed = reply.get("candidates") if isinstance(reply, dict) else None
    if not isinstance(listed, list) or len(listed) != CANDIDATES:
        raise ValueError(f"has not {CANDIDATES} candidates")
    candidates: list[QuestionAnswers] = []
    for candidate in listed:
        if not isinstance(candidate, dict) or set(candidate) != {"question", "answers"}:
            raise ValueError("has a candidate that is not a question with answers")
        question, answers = candidate["question"], candidate["answers"]
        if not isinstance(answers, list) or not 1 <= len(answers) <= MOST_ANSWERS:
            raise ValueError(f"has not 1 to {MOST_ANSWERS} answers")
        if not all(
            isinstance(line, str) and line.strip() and len(line) <= MOST_TEXT and line.isprintable()
            for line in (question, *answers)
        ):
            raise ValueError(f"has a text that is not one line of at most {MOST_TEXT} characters")
        distinct = list(dict.fromkeys(map(str.strip, answers)))
        candidates.append({"question": question.strip(), "answers": distinct})
    return candidates


def generated(
    example: PromqaExample, prompt: str, response: str | None, model: str, seed: int
) -> PromqaExample:
    """Return an example with prompt, reply and candidates, and the candidate that the seed draws, to be verified.

    Without a reply in the expected form it has no question. Keys as published.
    """
    generation: Generation = {
        "prompt": prompt,
        "response": response,
        "model_id": model,
        "template_type": TEMPLATE,
        "qas": [],
    }
    row: PromqaExample = {**example, "generation": generation}
    if response is None:
        return row
    try:
        generation["qas"] = candidates_of(response)
    except ValueError as error:
        generation["refused"] = str(error)
        return row
    drawn = random.Random(f"{seed} {example['question_id']}").choice(generation["qas"])
    row["verification"] = {**drawn, "judges": []}
    return row
