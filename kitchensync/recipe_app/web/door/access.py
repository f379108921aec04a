"""Routes of the app with their access and body limits; a route cannot be defined without an access."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, cast

from fastapi import Depends, Request, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection

from kitchensync.recipe_app.cooking.collaborators import Collaborators
from kitchensync.recipe_app.errors import NotAllowed
from kitchensync.recipe_app.people.accounts import Visitor
from kitchensync.recipe_app.people.roles import Access
from kitchensync.recipe_app.people.visitors import Tokens
from kitchensync.recipe_app.web.door import request_bodies
from kitchensync.storage.disk.free_space import require_room

DEVICE_COOKIE = "ks_device"
LOGIN_COOKIE = "ks_login"
LOGIN_HEADER = "x-kitchensync-login"
CSRF_HEADER = "x-kitchensync-csrf"

_SAFE = frozenset(("GET", "HEAD", "OPTIONS"))
_ANONYMOUS = frozenset((Access.PUBLIC, Access.DEVICE))


JsonObject = Mapping[str, object]
"""An answer to be serialized as JSON."""


class SignInFirst(NotAllowed):
    """A request without the person or paired tablet that it needs."""


@dataclass(frozen=True)
class Route:
    """An entry of the table of routes."""

    path: str
    endpoint: Callable[..., Any]
    access: Access
    method: str = "GET"
    page: bool = False
    body: request_bodies.RequestBody | None = None

    @property
    def takes(self) -> request_bodies.RequestBody:
        """The accepted body; by default small, and smaller still on public routes."""
        return self.body or request_bodies.RequestBody(
            request_bodies.MAX_FORM if self.access is Access.PUBLIC else request_bodies.MAX_BODY
        )

    def build(self) -> APIRoute:
        """Make the FastAPI route, which checks the access before it reads the body."""
        return _guarded(self)(
            self.path,
            self.endpoint,
            methods=[self.method],
            name=self.endpoint.__name__,
            include_in_schema=not self.page,
        )


Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def _guarded(route: Route) -> type[APIRoute]:
    """Return a FastAPI route class with the access check first: dependencies run only after the body is read."""
    turns = request_bodies.Turns(route.takes.at_once) if route.takes.at_once else None

    class Guarded(APIRoute):
        def get_route_handler(self) -> Handler:
            handler = super().get_route_handler()

            async def guarded(request: Request) -> Response:
                await require(request, route.access)
                if route.method in _SAFE:
                    return await handler(request)
                return await _with_body(request, route.takes, turns, handler)

            return guarded

    return Guarded


async def _with_body(
    request: Request, takes: request_bodies.RequestBody, turns: request_bodies.Turns | None, handler: Handler
) -> Response:
    takes.check(request)
    pace = request_bodies.Pace()
    bounded = Request(request.scope, request_bodies.timely(request.receive, takes.most, pace))
    if turns is None:
        return await handler(bounded)
    collaborators, visitor = await tools(request), await visitor_of(request)
    folder, most = collaborators.folders.data, request_bodies.stated_bytes(request) or takes.most
    async with turns.one(visitor.device["id"] if visitor.device else visitor.actor):
        collaborators.quotas.require(visitor, most)
        require_room(folder, most)
        answer = await handler(request_bodies.SpooledRequest(bounded, folder) if takes.strings else bounded)
        collaborators.quotas.take(visitor, pace.taken)
        return answer


async def tools(request: Request) -> Collaborators:
    """Return the app's collaborators."""
    return cast(Collaborators, request.app.state.collaborators)


async def visitor_of(request: Request) -> Visitor:
    """Return the visitor of a request, looked up once per request and cached for a moment."""
    if not hasattr(request.state, "visitor"):
        visitors = (await tools(request)).visitors
        tokens, _ = tokens_of(request)
        known = visitors.known(tokens) if tokens != Tokens() else Visitor()
        request.state.visitor = known or await run_in_threadpool(visitors.look_up, tokens)
    return cast(Visitor, request.state.visitor)


def tokens_of(request: HTTPConnection) -> tuple[Tokens, bool]:
    """Return a request's device and sign-in tokens, and whether they are cookies that a browser sends by itself."""
    scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
    login = request.headers.get(LOGIN_HEADER, "")
    if scheme.lower() == "bearer" or login:
        return Tokens(bearer.strip(), login), False
    return Tokens(request.cookies.get(DEVICE_COOKIE, ""), request.cookies.get(LOGIN_COOKIE, "")), True


async def require(request: Request, access: Access) -> None:
    """Require an access, and the CSRF token if the tokens are cookies. Raises NotAllowed."""
    if access is Access.PUBLIC:
        return
    visitor = await visitor_of(request)
    if not visitor.may(access):
        if access is Access.DEVICE or (access is Access.COOK and visitor.device is None):
            raise SignInFirst("pair this tablet first")
        if visitor.person is None:
            raise SignInFirst("sign in first")
        if visitor.desk:
            raise SignInFirst("your role does not allow this")
        raise SignInFirst("this needs a sign-in at the desk")
    if request.method not in _SAFE and access not in _ANONYMOUS and tokens_of(request)[1]:
        token = request.headers.get(CSRF_HEADER, "")
        if not hmac.compare_digest(token.encode(), visitor.csrf.encode()):
            raise NotAllowed("this page is too old; load it again")


async def _require_device(request: Request) -> dict[str, Any]:
    device = (await visitor_of(request)).device
    if device is None:
        raise SignInFirst("pair this tablet first")
    return device


Asking = Annotated[Visitor, Depends(visitor_of)]
Tools = Annotated[Collaborators, Depends(tools)]
Device = Annotated[dict[str, Any], Depends(_require_device)]
