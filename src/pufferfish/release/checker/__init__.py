"""The checkers of certificates: ``check.py``, ``check_networks.py`` and ``check_more.py``, as in ``certificate``."""
