"""Peak memory of a fit on 50,000 x 512 descriptors, of the whole process: descriptors, libraries and all.

Two kinds of data: clusters, as collections of pictures have, and pure noise, in which every batch needs the
whole graph. Few steps are enough: each needs what the one before did. Prints one line of JSON per kind.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
KINDS = ("clusters", "noise")


def measure(kind: str, n: int, d: int, steps: int) -> dict[str, object]:
    import numpy as np

    from gradnet import GradNet

    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d), dtype=np.float32)
    if kind == "clusters":
        X += rng.standard_normal((n // 50, d), dtype=np.float32)[rng.integers(0, n // 50, n)]
    started = time.perf_counter()
    model = GradNet(max_steps=steps, random_state=0).fit(X)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    return {
        "data": kind,
        "shape": [n, d],
        "steps": steps,
        "peak_GB": round(peak, 2),
        "seconds": round(time.perf_counter() - started, 1),
        "seconds_graph": round(model.info_["seconds_graph"], 1),
        "edges": model.info_["edges"],
    }


if __name__ == "__main__":
    if len(sys.argv) > 1:
        kind, n, d, steps = sys.argv[1], *map(int, sys.argv[2:])
        print(json.dumps(measure(kind, n, d, steps)))
    else:
        for kind in KINDS:  # a process each: the peak is the process's own
            subprocess.run([sys.executable, __file__, kind, "50000", "512", "5"], check=True)
