"""The checkers of certificates: ``check.py``, ``check_networks.py`` and ``check_more.py`` of the folder ``certificate``."""
