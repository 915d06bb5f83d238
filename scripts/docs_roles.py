"""For the site: docstrings have roles of Sphinx. Names of classes become code, formulas stand in dollars as in docs."""

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc):`~?([^`]+)`")
MATH = re.compile(r":math:`([^`]+)`")
SIGN = re.compile(r"\\([{}|])([A-Za-z]?)")
WORDS = {"{": r"\lbrace", "}": r"\rbrace", "|": r"\Vert"}
"""Signs that formulas of docs/ have as words."""


class Roles(griffe.Extension):
    """Turn ``:class:`Name``` into ``Name``, as code, and ``:math:`x``` into ``$x$``."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = MATH.sub(_formula, ROLE.sub(r"`\1`", obj.docstring.value))


def _formula(found: re.Match[str]) -> str:
    text = " ".join(found[1].split())
    return f"${SIGN.sub(lambda sign: f'{WORDS[sign[1]]} {sign[2]}'.rstrip(), text)}$"
