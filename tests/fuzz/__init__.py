"""Fuzzing: whatever bytes a file or a command line holds, one clear line or a sound result (docs/fuzzing.md).

Each file here but ``mutation``, ``target`` and ``run`` is a target: what it is given, and what must hold of it.
"""
