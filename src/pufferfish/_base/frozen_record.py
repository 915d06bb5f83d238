"""Records that go into files as JSON, and cannot be changed: their lists and dicts are read-only too."""

import reprlib
from typing import Any

import msgspec

from pufferfish._base.frozen import frozen

__all__ = ["FrozenRecord"]


class _Short(reprlib.Repr):
    """Writes lists, dicts and texts with their first parts only: a record may hold large matrices."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxstring, self.maxother = 3, 80, 200

    def repr_FrozenList(self, x: Any, level: int) -> str:
        return self.repr_list(x, level)

    def repr_FrozenDict(self, x: Any, level: int) -> str:
        return self.repr_dict(x, level)


_SHORT = _Short()


class FrozenRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A record whose fields are set once, and hold read-only copies of what they were given."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            given = getattr(self, name)
            kept = frozen(given)
            if kept is not given:
                msgspec.structs.force_setattr(self, name, kept)

    def __repr__(self) -> str:
        fields = (f"{name}={_SHORT.repr(getattr(self, name))}" for name in self.__struct_fields__)
        return f"{type(self).__name__}({', '.join(fields)})"
