"""Markup of HTML: every text in it is escaped, unless it is markup already.

A :class:`Html` is text that is safe already; :func:`tag` escapes all other text, so a name from a table or model can
never become markup. Notebooks and the pages of reports are written with it.
"""

from collections.abc import Iterable
from html import escape
from typing import Any

from pufferfish.errors import printable

__all__ = ["Html", "join", "tag"]

_VOID = frozenset({"meta", "input", "br"})


class Html(str):
    """Markup: text that is escaped already."""

    __slots__ = ()


Part = "Html | str | float | None | Iterable[Part]"
"""What may stand in an element; None is nothing, and all text but :class:`Html` is escaped."""


def _safe(part: Any) -> str:
    if part is None:
        return ""
    if isinstance(part, Html):
        return part
    if isinstance(part, str):
        return escape(printable(part))
    return "".join(map(_safe, part)) if isinstance(part, Iterable) else escape(str(part))


def join(*parts: Any) -> Html:
    """Return parts one after the other; text is escaped.

    Examples
    --------
    >>> join("a < b", tag("b", "c"))
    'a &lt; b<b>c</b>'
    """
    return Html("".join(map(_safe, parts)))


def tag(name: str, /, *parts: Any, **attributes: Any) -> Html:
    """Return an element; ``class_`` and ``aria_label`` are written as HTML has them, None and False are left out.

    Examples
    --------
    >>> tag("td", "<script>", class_="n", title='"')
    '<td class="n" title="&quot;">&lt;script&gt;</td>'
    """
    given = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(printable(str(value)))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return Html(f"<{name}{given}>" if name in _VOID else f"<{name}{given}>{join(*parts)}</{name}>")
