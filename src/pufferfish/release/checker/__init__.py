"""The checker of certificates: the files ``check.py`` and ``check_more.py`` of ``certificate``, which stand alone."""
