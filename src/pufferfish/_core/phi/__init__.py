"""Φ: how much of what is known about one record reaches the next; searched, and certified."""
