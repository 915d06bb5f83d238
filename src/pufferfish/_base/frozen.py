"""What a proof rests on cannot be changed: arrays, mappings and objects that are read-only for good.

A model that is changed after it was used keeps what was computed of it before, and a release then promises what nobody
proved. So every model, query, calibration and table holds private copies that refuse to be written, and a copy of such
an object, by ``copy``, ``pickle`` or ``dataclasses.replace``, is the object itself or goes through its constructor.

This is against mistakes. Who wants to can still get around it, by ``object.__setattr__`` or by giving one of these
arrays another ``strides``, ``shape`` or ``dtype``, which numpy allows for any array.
"""

import reprlib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NoReturn, Self, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_Number = TypeVar("_Number", bound=np.generic)


def read_only(array: NDArray[_Number]) -> NDArray[_Number]:
    """Return a private copy over immutable memory, which ``setflags(write=True)`` cannot open again.

    >>> kept = read_only(np.array([0.5, 0.5]))
    >>> kept.setflags(write=True)
    Traceback (most recent call last):
    ValueError: cannot set WRITEABLE flag to True of this array
    """
    base: Any = array.base
    if type(array) is np.ndarray and isinstance(base, bytes):
        return array
    return np.ndarray(array.shape, array.dtype, buffer=array.tobytes())


def _refusing(what: str, copy: str) -> Any:
    def refuse(self: Any, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(f"this {what} is read-only: make a new object from a changed copy, {copy}")

    return refuse


class _Itself:
    """What is read-only: a copy of it is the object itself."""

    __slots__ = ()

    def __copy__(self) -> Self:
        return self


class FrozenDict(_Itself, dict[_Key, _Value]):
    """A dict that refuses to be changed.

    >>> FrozenDict(a=1)["a"] = 2
    Traceback (most recent call last):
    TypeError: this mapping is read-only: make a new object from a changed copy, dict(mapping)
    """

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refusing("mapping", "dict(mapping)")
    clear = pop = popitem = setdefault = update = __setitem__

    def __hash__(self) -> int:
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)


class FrozenList(_Itself, list[_Value]):
    """A list that refuses to be changed."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refusing("list", "list(values)")
    append = clear = extend = insert = pop = remove = reverse = sort = __setitem__

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (list(self),)


def frozen(value: Any) -> Any:
    """Return lists and dicts, and those in them, as read-only copies; anything else as it is."""
    if isinstance(value, FrozenList | FrozenDict):
        return value
    if isinstance(value, list):
        return FrozenList(map(frozen, value))
    if isinstance(value, dict):
        return FrozenDict({key: frozen(part) for key, part in value.items()})
    return value


class ReadOnly(_Itself):
    """An object, as a frozen dataclass, whose attributes are set once: what its constructor takes makes it again."""

    __slots__ = ()

    def _keep(self, **values: Any) -> None:
        """Set fields: for constructors alone."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is read-only: cannot set {name!r}; make a new one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is read-only: cannot delete {name!r}; make a new one")

    def __deepcopy__(self, memo: Mapping[int, Any]) -> Self:
        return self

    def __reduce__(self) -> Any:
        me: Any = self
        return _made, (type(self), {field.name: getattr(self, field.name) for field in fields(me) if field.init})


def _made(kind: Any, arguments: Mapping[str, Any]) -> Any:
    """Make an object by its constructor, which checks and copies what it is given."""
    return kind(**arguments)


# -- Records that go into files as JSON ------------------------------------------------------------------------------


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
            value = getattr(self, name)
            kept = frozen(value)
            if kept is not value:
                msgspec.structs.force_setattr(self, name, kept)

    def __repr__(self) -> str:
        fields = (f"{name}={_SHORT.repr(getattr(self, name))}" for name in self.__struct_fields__)
        return f"{type(self).__name__}({', '.join(fields)})"
