"""Renderers that know marks, and nothing of releases: SVG, heat maps, graphs, pages, figures of matplotlib."""
