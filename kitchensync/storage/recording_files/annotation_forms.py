"""Types of the files in `annotations/`. A recording may come from elsewhere, so each file is checked when read."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    ValidationError,
    model_validator,
)

_Span = tuple[FiniteFloat, FiniteFloat]
Moment = Literal["at", "end", "point_of_no_return", "noticed_at", "corrected_at"]
MOMENTS: tuple[str, ...] = get_args(Moment)
"""The moments of an error, named as in the log; `at` is its begin."""


def _checked_rate(fps: str) -> str:
    try:
        is_rate = Fraction(fps) > 0
    except ZeroDivisionError:
        is_rate = False
    if not is_rate:
        raise ValueError("not a rate")
    return fps


_Rate = Annotated[str, AfterValidator(_checked_rate)]


class _Form(BaseModel):
    """The keys that readers use have their types; other keys are free."""

    model_config = ConfigDict(extra="allow")


class _MarkedFilm(_Form):
    fps: Any
    frames: int | None
    proxy_sha256: str | None


class _RawMarks(_Form):
    result: list[Any] | None = None


class MarkedSteps(_Form):
    """A version of an annotation."""

    annotation: int
    author: str
    source: Any
    was_cancelled: bool
    film: _MarkedFilm
    raw: _RawMarks


class _AcceptedStep(_Form):
    node: int
    start_frame: int
    end_frame: int


class AcceptedVersion(_Form):
    """The version of the step times that counts."""

    version: int
    author: str
    fps: _Rate
    frames: int
    steps: list[_AcceptedStep]


class _WrittenFilm(_Form):
    sha256: str
    address: str
    fps: str
    frames: int


class AnnotatedFilms(_Form):
    """The small films that were given to annotators."""

    films: list[_WrittenFilm]


class _Project(_Form):
    server: str
    project: str


class ProjectsOfTasks(_Form):
    """Where tasks of a recording are."""

    places: list[_Project]


class _JudgedError(_Form):
    error_id: str
    judged: dict[str, str | None]
    moments: dict[Moment, Annotated[int, Field(ge=1)] | None] = {}
    ruled: list[str] = []


class JudgedErrors(_Form):
    """What people judged of errors: question -> answer, moment -> frame of a video of `frames` at `fps`."""

    errors: list[_JudgedError]
    fps: _Rate | None = None
    frames: int | None = None

    @model_validator(mode="after")
    def _is_in_the_video(self) -> JudgedErrors:
        if (self.fps is None) != (self.frames is None):
            raise ValueError("fps without frames, or frames without fps")
        for error in self.errors:
            known = [frame for frame in error.moments.values() if frame is not None]
            if error.moments and max([1, *known]) > (self.frames or 0):
                raise ValueError(f"{error.error_id}: a moment is not in the video")
            if (error.moments.get("at") or 0) > min(known, default=0):
                raise ValueError(f"{error.error_id}: a moment is before the begin")
        return self


class _Judge(_Form):
    question: bool
    answers: list[bool]


class _Verification(_Form):
    judges: list[_Judge]

    @model_validator(mode="after")
    def _judged_the_same_answers(self) -> _Verification:
        judged = {len(judge.answers) for judge in self.judges if judge.question}  # others judge no answers
        if len(judged) > 1:
            raise ValueError("judges of a question judged different numbers of answers")
        return self


class _Question(_Form):
    question_id: str
    recording_id: str
    type: str
    valid: bool
    verification: _Verification


class VerifiedQuestions(_Form):
    """Questions and answers that people verified."""

    questions: list[_Question]


class _Pass(_Form):
    evidence: list[_Span]


class _Evidence(_Form):
    question_id: str
    recording: str
    iou: FiniteFloat | None
    valid: bool
    passes: tuple[_Pass, _Pass]
    clip_start: FiniteFloat = 0.0
    evidence: list[_Span] = []
    spans: list[_Span] = []

    @model_validator(mode="after")
    def _is_whole_where_valid(self) -> _Evidence:
        if self.valid and not {"clip_start", "evidence", "spans"} <= self.model_fields_set:
            raise ValueError("a valid question without its evidence")
        return self


class MarkedEvidence(_Form):
    """Where in the film people saw the answers."""

    questions: list[_Evidence]


class _Item(_Form):
    item: str
    text: str
    from_s: FiniteFloat
    end_s: FiniteFloat
    hidden: dict[str, Any]


class Opinions(_Form):
    """What people think of items: person -> item -> question -> answer; and figures by question."""

    items: list[_Item]
    answers: list[dict[str, dict[str, str]]]
    figures: dict[str, dict[str, FiniteFloat | None]]


class _NarratedFilm(_Form):
    fps: tuple[Annotated[int, Field(gt=0)], Annotated[int, Field(gt=0)]]
    frames: int


class _Narration(_Form):
    frame: int
    end_frame: int | None = None
    node: int = 0
    text: str = ""
    source: str = ""


class Narrations(_Form):
    """The answers of one person about the video."""

    author: str
    film: _NarratedFilm
    narrations: list[_Narration]


FORMS: dict[str, type[_Form]] = {
    "accepted-steps/1": AcceptedVersion,
    "marked-steps/1": MarkedSteps,
    "annotated-films/1": AnnotatedFilms,
    "pushed-tasks/1": ProjectsOfTasks,
    "judged-errors/1": JudgedErrors,
    "verified-questions/1": VerifiedQuestions,
    "marked-evidence/1": MarkedEvidence,
    "decisions-of-people/1": Opinions,
    "ratings-of-people/1": Opinions,
    "narrations/1": Narrations,
}


def misfit(text: str | bytes, schema: str) -> str:
    """Return the first field that breaks the form of a schema, and why; an empty text if none does."""
    try:
        if schema in FORMS:
            FORMS[schema].model_validate_json(text, strict=True)  # strict: readers use the file's own values
    except ValidationError as error:
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return ""
