"""Which counts to measure, and how sharply: a search over public things that proposes, and proves nothing."""
