"""Figures of a sample of durations, and how they are printed."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def quantile(sample: Sequence[float], share: float) -> float:
    """The value that ``share`` of the sample does not exceed."""
    ordered = sorted(sample)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def row(label: str, sample: Sequence[float]) -> str:
    """Median, p99 and mean of durations in seconds, in milliseconds."""
    return (
        f"{label:<34} median {statistics.median(sample) * 1e3:9.3f} ms"
        f"   p99 {quantile(sample, 0.99) * 1e3:9.3f} ms"
        f"   mean {statistics.fmean(sample) * 1e3:9.3f} ms"
    )


def ratio(peer: Sequence[float], ours: Sequence[float]) -> float:
    """How many times the peer's median is of ours."""
    return statistics.median(peer) / statistics.median(ours)
