"""Addresses of databases, such as ``postgresql://host/database``: what is one, and how it is shown."""

import re
from typing import Any

__all__ = ["is_address", "shown_address"]


def is_address(where: Any) -> bool:
    """Whether somebody names a database, by an address such as ``sqlite:///book.db``, and not a file."""
    return isinstance(where, str) and "://" in where


def shown_address(where: str) -> str:
    """Return an address without its password, which stands in no message and no file.

    >>> shown_address("postgresql://office:secret@host/clinic?table=steps&password=secret")
    'postgresql://office@host/clinic?table=steps&password='
    """
    address, mark, name = where.partition("#")
    address = re.sub("://([^/:@]*):[^/]*@", r"://\1@", address)
    return re.sub("(?<=[?&])password=[^&]*", "password=", address) + mark + name
