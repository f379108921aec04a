"""The labelling configuration of a project, XML: read its labels, or write one."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree.ElementTree import Element, ParseError, SubElement, tostring

from kitchensync.task_graphs.errors import BadGraph

MOST_BYTES = 4 << 20
_MOST_ELEMENTS = 20_000


def parse_labels(content: bytes, name: str) -> frozenset[str]:
    """Return the labels of a configuration. Raises BadGraph."""
    labels = frozenset(
        text
        for element in parse_xml(content, name).iter("Label")
        for text in (element.get("value"), element.get("alias"))
        if text
    )
    if not labels:
        raise BadGraph(name, "", "has no labels; give the labelling configuration of the project")
    return labels


def parse_xml(content: bytes, name: str) -> Element:
    """Parse a document of limited size without DTD. Raises BadGraph."""
    from defusedxml.common import DefusedXmlException  # needs an extra, writing a configuration does not
    from defusedxml.ElementTree import fromstring

    if len(content) > MOST_BYTES:
        raise BadGraph(name, "", f"{len(content)} bytes, at most {MOST_BYTES} are read")
    try:
        root: Element = fromstring(content, forbid_dtd=True)
    except DefusedXmlException as error:
        raise BadGraph(name, "", "declares entities or a document type, which are not read") from error
    except (ParseError, ValueError, LookupError) as error:
        raise BadGraph(name, "", f"is not XML ({error})") from error
    if sum(1 for _ in root.iter()) > _MOST_ELEMENTS:
        raise BadGraph(name, "", f"has more than {_MOST_ELEMENTS} elements")
    return root


def timeline_config(labels: Iterable[str], *, shows_errors: bool) -> bytes:
    """Return the configuration for marking steps on a timeline of frames."""
    view = _view(shows_errors=shows_errors)
    SubElement(view, "Video", name="video", value="$video", frameRate="$fps", timelineHeight="180")
    steps = SubElement(view, "TimelineLabels", name="step", toName="video")
    for label in labels:
        SubElement(steps, "Label", value=label)
    flags = SubElement(view, "Choices", name="flag", toName="video", choice="multiple")
    for flag in ("sync off", "step missing"):
        SubElement(flags, "Choice", value=flag)
    return tostring(view, encoding="utf-8")


def audio_config(labels: Iterable[str], *, shows_errors: bool) -> bytes:
    """Return the configuration for transcribing speech, in seconds, by step."""
    view = _view(shows_errors=shows_errors)
    steps = SubElement(view, "Labels", name="action", toName="audio")
    for label in labels:
        SubElement(steps, "Label", value=label)
    SubElement(view, "Audio", name="audio", value="$audio")
    SubElement(view, "TextArea", name="transcription", toName="audio", perRegion="true", editable="true")
    return tostring(view, encoding="utf-8")


def _view(*, shows_errors: bool) -> Element:
    view = Element("View")
    SubElement(view, "Header", value="$title")
    if shows_errors:
        SubElement(view, "Text", name="errors", value="$errors")
    return view
