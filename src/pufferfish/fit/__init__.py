"""Models from public tables, and the files that keep them."""
