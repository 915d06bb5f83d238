"""Marks that would lie on each other, moved apart."""

__all__ = ["nearest"]


def nearest(pulls: list[list[tuple[float, float]]], offsets: list[float]) -> list[float]:
    """Return the places nearest to those that (place, strength) pull to, in least squares, at least offsets apart.

    Less the offsets it is isotonic regression: neighbours that would overlap are pooled and move as one.
    """
    pools: list[tuple[float, float, int]] = []
    for pull, offset in zip(pulls, offsets, strict=True):
        total, count = sum(strength for _, strength in pull), 1
        mean = sum(at * strength for at, strength in pull) / total - offset
        while pools and pools[-1][0] > mean:
            other, heavier, more = pools.pop()
            mean = (mean * total + other * heavier) / (total + heavier)
            total, count = total + heavier, count + more
        pools.append((mean, total, count))
    means = [mean for mean, _, count in pools for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]
