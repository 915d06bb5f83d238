"""Files on disk: read whole and checked, or refused; written whole, or not at all.

:mod:`pufferfish._base.reading` reads, :mod:`pufferfish._base.kinds` decides which file may be replaced, and
:mod:`pufferfish._base.writing` writes.
"""

from pufferfish._base.kinds import Kind, record_kind, same_file
from pufferfish._base.reading import LARGEST, decode_record, read_file, read_record
from pufferfish._base.writing import Output, check_writable, sweep, write_whole

__all__ = [
    "LARGEST",
    "Kind",
    "Output",
    "check_writable",
    "decode_record",
    "read_file",
    "read_record",
    "record_kind",
    "same_file",
    "sweep",
    "write_whole",
]
