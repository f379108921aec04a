"""One route of the app and who may use it; a route without an access cannot be written."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, cast

from fastapi import Depends, Request
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from recipe_app.cooking.collaborators import Collaborators
from recipe_app.errors import NotAllowed
from recipe_app.people.accounts import Visitor
from recipe_app.people.roles import Access
from recipe_app.people.visitors import Tokens

DEVICE_COOKIE = "ks_device"
LOGIN_COOKIE = "ks_login"
LOGIN_HEADER = "x-kitchensync-login"
CSRF_HEADER = "x-kitchensync-csrf"

_SAFE = frozenset(("GET", "HEAD", "OPTIONS"))
_ANONYMOUS = frozenset((Access.PUBLIC, Access.DEVICE))


class SignInFirst(NotAllowed):
    """Nobody, or the wrong body, asks for what needs a person or a paired tablet."""


@dataclass(frozen=True)
class Route:
    """A line of the table of routes."""

    path: str
    endpoint: Callable[..., Any]
    access: Access
    method: str = "GET"
    page: bool = False

    def build(self) -> APIRoute:
        """Make the framework's route: the guard of its access runs before anything else."""
        return APIRoute(
            self.path,
            self.endpoint,
            methods=[self.method],
            name=self.endpoint.__name__,
            include_in_schema=not self.page,
            dependencies=[Depends(_gate(self.access))],
        )


async def tools(request: Request) -> Collaborators:
    """Return what the app was built from."""
    return cast(Collaborators, request.app.state.collaborators)


async def visitor_of(request: Request) -> Visitor:
    """Say who asks; looked up once a request, and in memory where that was done a moment ago."""
    if not hasattr(request.state, "visitor"):
        visitors = (await tools(request)).visitors
        device, login, _ = _tokens(request)
        tokens = Tokens(device, login)
        known = visitors.known(tokens)
        request.state.visitor = known or await run_in_threadpool(visitors.look_up, tokens)
    return cast(Visitor, request.state.visitor)


def _tokens(request: Request) -> tuple[str, str, bool]:
    """Device and login token, and whether a browser sent them by itself."""
    scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
    login = request.headers.get(LOGIN_HEADER, "")
    if scheme.lower() == "bearer" or login:
        return bearer.strip(), login, False
    return request.cookies.get(DEVICE_COOKIE, ""), request.cookies.get(LOGIN_COOKIE, ""), True


def _gate(access: Access) -> Callable[[Request], Awaitable[None]]:
    async def gate(request: Request) -> None:
        await require(request, access)

    return gate


async def require(request: Request, access: Access) -> None:
    """Let in whoever holds the access, with the page's token where a browser asks. Raises NotAllowed."""
    if access is Access.PUBLIC:
        return
    visitor = await visitor_of(request)
    if not visitor.may(access):
        raise _what_is_missing(access, visitor)
    if request.method not in _SAFE and access not in _ANONYMOUS and _tokens(request)[2]:
        given = request.headers.get(CSRF_HEADER, "")
        if not hmac.compare_digest(given.encode(), visitor.csrf.encode()):
            raise NotAllowed("this page is too old; load it again")


def _what_is_missing(access: Access, visitor: Visitor) -> SignInFirst:
    if access is Access.DEVICE or (access is Access.COOK and visitor.device is None):
        return SignInFirst("pair this tablet first")
    if visitor.person is None:
        return SignInFirst("sign in first")
    if visitor.desk:
        return SignInFirst("your role does not allow this")
    return SignInFirst("this needs a sign-in at the desk")


async def _require_device(request: Request) -> dict[str, Any]:
    device = (await visitor_of(request)).device
    if device is None:
        raise SignInFirst("pair this tablet first")
    return device


Asking = Annotated[Visitor, Depends(visitor_of)]
Tools = Annotated[Collaborators, Depends(tools)]
Device = Annotated[dict[str, Any], Depends(_require_device)]
