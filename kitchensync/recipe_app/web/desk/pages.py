"""Pages: one shell for everything on the tablet, and the desk's pages, rendered on the server."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path
from typing import Any

from babel.dates import format_datetime
from fastapi import Request
from fastapi.responses import RedirectResponse, Response
from fastapi.templating import Jinja2Templates
from sqlalchemy import and_, or_, select

from kitchensync.operations.errors import NotNow
from kitchensync.operations.event_lines import consent_of, folder_of
from kitchensync.operations.operation_kinds import KINDS
from kitchensync.operations.planned_steps import numbered_steps, plan_of
from kitchensync.operations.session_state import Op, State
from kitchensync.operations.step_runs import began, spans, timeline
from kitchensync.recipe_app.cooking import checklist
from kitchensync.recipe_app.cooking.cards import unread_card
from kitchensync.recipe_app.cooking.checklist import is_through, still_open
from kitchensync.recipe_app.cooking.collaborators import Collaborators
from kitchensync.recipe_app.cooking.ended_today import title_of
from kitchensync.recipe_app.exchange.app_withdrawals import note_download, proofs
from kitchensync.recipe_app.exchange.stated_facts import AGES
from kitchensync.recipe_app.narration import voices
from kitchensync.recipe_app.people.pseudonyms import suggest
from kitchensync.recipe_app.people.roles import ROLES, Access
from kitchensync.recipe_app.store import oplog, tables
from kitchensync.recipe_app.store.app_records import roles_of
from kitchensync.recipe_app.web import i18n
from kitchensync.recipe_app.web.door.access import Asking, JsonObject, Route, Tools
from kitchensync.recipe_app.web.tablet.api_tablet import health_of
from kitchensync.recipe_app.web.tablet.tablet_files import shell_files, shell_version
from kitchensync.shell.terminal import shown_in_page
from kitchensync.storage.consent import Purpose, why_not
from kitchensync.storage.manifest import Manifest
from kitchensync.storage.names import APP_FOLDER
from kitchensync.storage.recording_files.kept_session_card import FINAL, FIRST, kept_cards
from kitchensync.task_graphs.categories import CATEGORIES
from kitchensync.task_graphs.errors import NotFound

FOLDER = Path(__file__).resolve().parents[2]
AUDIT_PAGE = 100
NAMED_KINDS = (*KINDS, "close_review", "recording")
"""Kinds of operations with a translated name; others are shown as in the log."""

templates = Jinja2Templates(directory=FOLDER / "templates")
templates.env.finalize = shown_in_page


def render(request: Request, name: str, status: int = 200, /, **fields: Any) -> Response:
    """Render a template in the language of the request."""
    words = i18n.words_of(request)

    def when(utc_ns: int) -> str:
        moment = datetime.datetime.fromtimestamp(utc_ns / 1e9, tz=datetime.UTC).astimezone()
        return f"{format_datetime(moment, 'medium', locale=words.locale)} {moment.tzname()}"

    common = {"t": words, "languages": i18n.LANGUAGES, "path": request.url.path, "when": when}
    answer = templates.TemplateResponse(request, name, {**common, **fields}, status_code=status)
    if request.query_params.get("lang"):
        answer.set_cookie(i18n.LANGUAGE_COOKIE, words.language, samesite="strict", max_age=31_536_000)
    return answer


def start(visitor: Asking) -> Response:
    """Redirect to the first page of a role or of a tablet."""
    if visitor.desk:
        return RedirectResponse("/desk/room" if visitor.may(Access.OPERATE) else "/desk/review", 303)
    return RedirectResponse("/t/choose" if visitor.device else "/t/welcome", 303)


def tablet(request: Request) -> Response:
    """Show the tablet's shell: the same for every recording, so that it can be cached for use offline."""
    return render(request, "tablet.html", version=shell_version())


def service_worker(request: Request) -> Response:
    """Return the script that caches the shell on the tablet; it changes with every version of the shell."""
    fields = {"version": shell_version(), "files": shell_files()}
    answer = templates.TemplateResponse(request, "sw.js", fields, media_type="text/javascript")
    answer.headers["service-worker-allowed"] = "/"
    return answer


def messages(language: str) -> JsonObject:
    """Return every message of a language that a script may show."""
    if language not in {*i18n.LANGUAGES, "xx"}:
        known = ", ".join(i18n.LANGUAGES)
        raise NotFound("no language {name!r}; there are {known}", name=language[:20], known=known)
    messages = i18n.catalogue(language).items()
    return {key: message for key, message in messages if key.partition(".")[0] not in i18n.ONLY_IN_TEMPLATES}


def desk_sign_in(request: Request, tools: Tools, visitor: Asking) -> Response:
    """Sign in at the desk, or accept an invite; a tablet shows where to do so."""
    return render(request, "desk/sign_in.html", here=tools.accounts.has_desk(visitor.device))


def kitchens_of(tools: Collaborators) -> dict[str, str]:
    """Return the names of all kitchens by their ids."""
    return {row["id"]: row["name"] for row in tools.records.rows(tables.kitchen)}


def who_cooks(tools: Collaborators, row: dict[str, Any]) -> dict[str, Any]:
    """Return what is cooked, by whom and where: `title`, `person`, `kitchen`."""
    person = tools.records.row(tables.person, row["person"])
    kitchen = kitchens_of(tools).get(row["kitchen"])
    return {"title": title_of(row["recipe"]), "person": person and person["pseudonym"], "kitchen": kitchen}


def recording(request: Request, tools: Tools, visitor: Asking, recording: str) -> Response:
    """Show a recording: its state for operators; plan, steps and errors for those who may study it."""
    state, ops = tools.records.state(recording), tools.records.ops(recording)
    row = tools.records.row(tables.recording, recording)
    person = tools.records.row(tables.person, row["person"]) if row else None
    health = health_of(tools, row["folder"] if row else None)
    steerable = tools.capture is not None
    kept = kept_cards(tools.folders.data / row["folder"]) if row and row["folder"] else {}
    devices = health["folder"] is not None or steerable
    words, point_keys = i18n.words_of(request), {"consent": "consent.title", "second": "checklist.second"}
    fields = {
        "recording": recording,
        "state": state,
        "row": row,
        "person": person,
        "visitor": visitor,
        "names": {row["id"]: row["name"] for row in tools.records.rows(tables.device)},
        "open_points": [
            words(point_keys.get(name, f"check.{name}")) for name in still_open(state, devices=devices)
        ],
        "health": health,
        "steerable": steerable,
        "on_shelf": row is not None and row["recipe"] in {shelved.name for shelved in tools.shelf.recipes()},
        "kitchen": kitchens_of(tools).get(row["kitchen"]) if row else None,
        "session": state["recording"].get("session", ""),
        "watched": health["health"] in ("starting", "recording", "problem", "unknown"),
        "startable": is_through(state),
        "unread": unread_card(tools, row["kitchen"]) if row and steerable else None,
        "asked": next((op["body"] for op in reversed(ops) if op["kind"] == "capture"), None),
        "study": visitor.may(Access.STUDY),
        "grace_hours": tools.folders.lab.grace_hours,
        "beside": _beside(tools, row) if row else [None, None],
        "card": kept.get(FINAL) or kept.get(FIRST),
        "aborted": tools.folders.why_aborted(row["folder"] if row else None),
        "lacking": tools.folders.lacking_consent(row["folder"] if row else None),
    }
    if fields["study"]:
        fields |= _studied(request, tools, recording, state, row, ops)
    return render(request, "desk/recording.html", **fields)


def _beside(tools: Collaborators, row: dict[str, Any]) -> list[str | None]:
    """Return the ids of the recordings that the list has above and below this one."""
    at, name = tables.recording.c.created_utc_ns, tables.recording.c.id
    utc_ns, here = row["created_utc_ns"], row["id"]
    newer = or_(at > utc_ns, and_(at == utc_ns, name < here))  # the list sorts equal times by id
    older = or_(at < utc_ns, and_(at == utc_ns, name > here))
    sides = ((newer, (at, name.desc())), (older, (at.desc(), name)))
    with tools.records.database.reading() as connection:
        return [
            connection.scalar(select(name).where(side).order_by(*order).limit(1)) for side, order in sides
        ]


def _studied(
    request: Request,
    tools: Collaborators,
    recording: str,
    state: State,
    row: dict[str, Any] | None,
    ops: list[Op],
) -> dict[str, Any]:
    """Return the fields for those who may study every recording."""
    plan = plan_of(state)
    numbers = numbered_steps(state, plan)
    words = i18n.words_of(request)

    def in_words(field: str, value: Any) -> str:
        if field == "categories":
            return ", ".join(words(f"category.{number}") for number in value)
        if field in ("outcome", "intent", "noticed") and value:
            return words(f"{field}.{value}")
        if field == "removed":
            return words("versions.removed" if value else "versions.kept")
        if field in ("node", "before", "corrected_by") and str(value) in state["recording"]["steps"]:
            return str(state["recording"]["steps"][str(value)]["text"])
        return str(value or "–")

    return {
        "last_n": ops[-1]["n"],
        "plan": plan,
        "numbers": numbers,
        "spans": spans(state),
        "line": timeline(state, numbers),
        "began_ns": began(state),
        "against": tools.judge.against(row) if row else None,
        "places": tools.folders.places(row["folder"] if row else None),
        "in_words": in_words,
        "categories": CATEGORIES,
        "ops": ops,
        "named_kinds": NAMED_KINDS,
        "sounds": voices.arrived(tools.records, recording),
    }


def script(request: Request, tools: Tools, visitor: Asking, recording: str) -> Response:
    """Show a script to print: the steps in their order, the planned errors, the certificate."""
    return printed(request, visitor, tools.records.state(recording))


def printed(request: Request, visitor: Asking, state: State) -> Response:
    """Show a script to print, from a recording's state or from a drawn script with the same keys."""
    text = {int(node): step["text"] for node, step in state["recording"]["steps"].items()}
    plan = plan_of(state)
    return render(request, "desk/script.html", visitor=visitor, state=state, text=text, plan=plan)


def consent(request: Request, tools: Tools, visitor: Asking, recording: str) -> Response:
    """Show the consent in the words that were shown, to print; empty boxes before it was answered."""
    answered = next((op for op in reversed(tools.records.ops(recording)) if op["kind"] == "consent"), None)
    answer = answered["body"] if answered else {"version": checklist.CONSENT_VERSION}
    kept = (op["body"] for op in tools.records.ops(answer["version"]) if op["kind"] == checklist.FORM)
    words = next((body["words"] for body in kept), checklist.WORDS)
    person = tools.records.row(tables.person, answered["actor"]) if answered else None
    reference, scopes = consent_of(recording, answer)
    fields = {
        "given": answered,
        "version": answer["version"],
        "words": words.get(answer.get("language") or i18n.words_of(request).language, words["en"]),
        "person": person["pseudonym"] if person else "–",
        "reference": reference,
        "scopes": scopes,
    }
    return render(request, "desk/consent.html", visitor=visitor, **fields)


def people(request: Request, tools: Tools, visitor: Asking) -> Response:
    """Show everybody by pseudonym, with roles."""
    rows = tools.records.rows(tables.person, order=tables.person.c.pseudonym)
    fields = {
        "people": [{**row, "roles": roles_of(row)} for row in rows],
        "roles": ROLES,
        "free": suggest([row["pseudonym"] for row in rows]),
        "ages": AGES,
    }
    return render(request, "desk/people.html", visitor=visitor, **fields)


def devices(request: Request, tools: Tools, visitor: Asking) -> Response:
    """Show kitchens and their tablets, and how to pair another."""
    rows = tools.records.rows(tables.device, order=tables.device.c.name)
    fields = {"devices": rows, "kitchens": kitchens_of(tools)}
    return render(request, "desk/devices.html", visitor=visitor, **fields)


def attachment(content: str | bytes, media_type: str, name: str) -> Response:
    """Return a file to download."""
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=media_type, headers=headers)


def export(tools: Tools, visitor: Asking, recording: str) -> Response:
    """Download a recording as one file: its frozen plan, every operation, its state, every sound."""
    required_release(tools, recording)
    name, content = exported(tools, recording)
    note_download(tools.records, recording, actor=visitor.actor)
    return attachment(json.dumps(content, indent=1, ensure_ascii=False), "application/json", name)


def exported(tools: Collaborators, recording: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the content of the file with everything of a recording."""
    state = tools.records.state(recording)
    content = {
        "schema": "recording-log/1",
        "state": state,
        "operations": tools.records.ops(recording),
        "sounds": voices.exported(tools.records, recording),
    }
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", f"{state['recording']['name']}-{recording[-12:]}.json")
    return name, content


def required_release(tools: Collaborators, recording: str) -> None:
    """Raise NotNow unless a recording may be released, by its folder's consent or by the answers in the log."""
    state, folder = tools.records.state(recording), folder_of(tools.records.ops(recording))
    if state["withdrawn"]:
        raise NotNow("this recording is withdrawn; nothing of it is exported")
    if "annotated" in state["recording"]:
        return
    reference, scopes = consent_of(recording, state["consent"])
    stated: Manifest = {"consent": reference, "consent_scopes": list(scopes)}
    if why_not(tools.folders.manifest(folder) if folder else stated, Purpose.RELEASE_RAW):
        raise NotNow(
            "nobody agreed to `release_raw`: nothing of it is exported; "
            "that is given on the tablet, or by `kitchensync consent`"
        )


def audit(
    request: Request,
    tools: Tools,
    visitor: Asking,
    before: int | None = None,
    actor: str = "",
    device: str = "",
    subject: str = "",
) -> Response:
    """Show the log, newest first; its first page shows whether the chain is intact, and what was destroyed."""
    chosen = {"actor": actor, "device": device, "subject": subject}
    log_state: dict[str, Any] = {"is_whole": before is None and not any(chosen.values())}
    with tools.records.database.reading() as connection:
        page = oplog.newest(connection, before=before, count=AUDIT_PAGE, **chosen)
        if log_state["is_whole"]:
            log_state |= {"fault": oplog.first_fault(connection), "unfit": tools.intake.unfit_anchors()}
    if log_state["is_whole"]:
        log_state["proofs"] = proofs(tools.folders.data / APP_FOLDER)
    known = bool(subject and tools.records.row(tables.recording, subject))
    names = {row["id"]: row["pseudonym"] for row in tools.records.rows(tables.person)}
    names |= {row["id"]: row["name"] for row in tools.records.rows(tables.device)}
    return render(
        request,
        "desk/audit.html",
        visitor=visitor,
        ops=page,
        names=names,
        chosen=chosen,
        recording=known,
        named_kinds=NAMED_KINDS,
        in_words=_in_words,
        **log_state,
    )


def _in_words(value: Any) -> str:
    """Return the body of an operation as plain text without JSON punctuation; empty values are left out."""
    if isinstance(value, dict):
        texts = {key.replace("_", " "): _in_words(item) for key, item in value.items()}
        return "; ".join(f"{key}: {words}" for key, words in texts.items() if words)
    if isinstance(value, list):
        return ", ".join(_in_words(item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def doctor(request: Request, tools: Tools, visitor: Asking) -> Response:
    """Show whether this browser is suitable (secure context, storage, wake lock, clock) and the certificate."""
    fields = {"has_ca": tools.ca_file is not None, "waiting": len(tools.records.waiting())}
    return render(request, "doctor.html", visitor=visitor if visitor.desk else None, **fields)


def authority(tools: Tools) -> Response:
    """Return the certificate of the app's own authority, for a tablet to install."""
    if tools.ca_file is None:
        raise NotFound(
            "no certificate {name!r}; this app is served on this computer only, without HTTPS", name="ca.crt"
        )
    return Response(tools.ca_file, media_type="application/x-x509-ca-cert")


def refusal(request: Request, error: Exception, status: int) -> Response:
    """Show a page with the reason of an error."""
    return render(request, "refusal.html", status, error=i18n.words_of(request).refusal(error))


ROUTES = [
    Route("/", start, Access.PUBLIC, page=True),
    Route("/t/{path:path}", tablet, Access.PUBLIC, page=True),
    Route("/q", tablet, Access.PUBLIC, page=True),
    Route(
        "/q/{_}", tablet, Access.PUBLIC, page=True
    ),  # an old card: the page shows that it is not valid any more
    Route("/sw.js", service_worker, Access.PUBLIC, page=True),
    Route("/locales/{language}.json", messages, Access.PUBLIC, page=True),
    Route("/doctor", doctor, Access.PUBLIC, page=True),
    Route("/ca.crt", authority, Access.PUBLIC, page=True),
    Route("/desk/sign-in", desk_sign_in, Access.PUBLIC, page=True),
    Route("/desk/recordings/{recording}", recording, Access.OPERATE, page=True),
    Route("/desk/recordings/{recording}/script", script, Access.OPERATE, page=True),
    Route("/desk/recordings/{recording}/consent", consent, Access.OPERATE, page=True),
    Route("/desk/people", people, Access.OPERATE, page=True),
    Route("/desk/devices", devices, Access.OPERATE, page=True),
    Route("/desk/recordings/{recording}/export.json", export, Access.STUDY, page=True),
    Route("/desk/audit", audit, Access.ADMIN, page=True),
]
