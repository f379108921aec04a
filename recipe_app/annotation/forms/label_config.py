"""The labelling configuration of a project: XML, which labels there are."""

from __future__ import annotations

from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from recipe_app.errors import BadGraph

MOST_BYTES = 4 << 20
_MOST_ELEMENTS = 20_000


def parse_labels(content: bytes, name: str) -> frozenset[str]:
    """Return the labels of a configuration. Raises BadGraph."""
    found = frozenset(
        text
        for element in parse_xml(content, name).iter("Label")
        for text in (element.get("value"), element.get("alias"))
        if text
    )
    if not found:
        raise BadGraph(name, "", "has no labels; give the labelling configuration of the project")
    return found


def parse_xml(content: bytes, name: str) -> Element:
    """Parse a bounded document without declarations of its own. Raises BadGraph."""
    if len(content) > MOST_BYTES:
        raise BadGraph(name, "", f"{len(content)} bytes, at most {MOST_BYTES} are read")
    try:
        root: Element = fromstring(content, forbid_dtd=True)
    except DefusedXmlException as error:
        raise BadGraph(name, "", "declares entities or a document type, which are not read") from error
    except (ParseError, ValueError, LookupError) as error:
        raise BadGraph(name, "", f"is no XML ({error})") from error
    if sum(1 for _ in root.iter()) > _MOST_ELEMENTS:
        raise BadGraph(name, "", f"has more than {_MOST_ELEMENTS} elements")
    return root
