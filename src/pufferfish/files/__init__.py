"""Files on disk: read whole and checked, or refused; written whole, or not at all.

:mod:`pufferfish.files.reading` reads, :mod:`pufferfish.files.kinds` decides which file may be replaced, and
:mod:`pufferfish.files.writing` writes.
"""

from pufferfish.files.kinds import Kind, record_kind, same_file
from pufferfish.files.reading import LARGEST, decode_record, read_file, read_record
from pufferfish.files.writing import Output, check_writable, sweep, write_whole

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
