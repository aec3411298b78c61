"""Counts and times of requests, for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

_BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)


@dataclass
class Timing:
    """Seconds, once they have passed."""

    seconds: float = 0.0


class Metrics:
    """What has been asked, by path as the API names it, and by status."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        labels = ("method", "path", "status")
        self._requests = Counter("gradnet_requests_total", "Requests.", labels, registry=self._registry)
        self._seconds = Histogram(
            "gradnet_request_seconds",
            "Time of a request.",
            ("path",),
            buckets=_BUCKETS,
            registry=self._registry,
        )

    def watch(self, name: str, words: str, value: Callable[[], float]) -> None:
        """A number that is asked for whenever somebody looks."""
        Gauge(name, words, registry=self._registry).set_function(value)

    @contextmanager
    def timed(self) -> Iterator[Timing]:
        """Times what is done inside."""
        timing, started = Timing(), time.perf_counter()
        try:
            yield timing
        finally:
            timing.seconds = time.perf_counter() - started

    def count(self, scope: MutableMapping[str, Any], status: int, seconds: float) -> None:
        """Enter a request. Paths are those of the API, so that nobody can fill the memory with names."""
        path = getattr(scope.get("route"), "path", "other")
        method = scope["method"] if scope["method"] in ("GET", "POST", "DELETE", "HEAD") else "other"
        self._requests.labels(method, path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def text(self) -> bytes:
        """As Prometheus reads it."""
        return generate_latest(self._registry)
