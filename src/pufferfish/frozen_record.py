"""Records that go into files as JSON, and cannot be changed: their lists and dicts are read-only too."""

import msgspec

from pufferfish.core.numbers.read_only import frozen

__all__ = ["FrozenRecord"]


class FrozenRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A record whose fields are set once, and hold read-only copies of what they were given."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            given = getattr(self, name)
            kept = frozen(given)
            if kept is not given:
                msgspec.structs.force_setattr(self, name, kept)
