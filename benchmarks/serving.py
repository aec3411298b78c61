"""Benchmark: the search page under fifty clients, its memory over many searches, and how quickly a browser shows it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from measuring import Case

MOST_P99_MS, MOST_PAINT_MS, MOST_MEGABYTES, LEAST_FRAMES = 150.0, 1500.0, 1.5, 30.0
CLIENTS = 50

_SETTINGS = {"max_steps": 5}
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
_PAN = """async (n) => {
  const { PointMap } = await import("/static/points.js"), { Colours } = await import("/static/colours.js");
  const points = Float32Array.from({ length: 2 * n }, () => Math.random() * 2 - 1), facts = { pictures: false };
  const map = new PointMap({ points, facts, colours: new Colours("", null, n), ids: async () => [] });
  document.querySelector("main").replaceChildren(map.box);
  await new Promise((resolve) => setTimeout(resolve, 500));
  let frames = 0;
  const until = performance.now() + 3000;
  await new Promise((resolve) => {
    const step = () => {
      map.x += 3;
      map.y -= 2;
      map.paint();
      frames += 1;
      if (performance.now() < until) requestAnimationFrame(step);
      else resolve();
    };
    requestAnimationFrame(step);
  });
  return frames / 3;
}"""


def cases(quick: bool) -> list[Case]:
    """The photographs of the Paris subset where they are, else as many painted ones."""
    size = {"n": 60, "seconds": 1, "searches": 200} if quick else {"n": 1274, "seconds": 60, "searches": 10_000}
    return [Case(f"{size['n']:,} pictures", size, (0,))]


def run(n: int, seconds: float, searches: int, seed: int) -> dict[str, float]:
    """Milliseconds of a search by id, errors, growth of memory; what the browser says of the first view and the map."""
    from manifind.model.index_folder import index_folder

    with tempfile.TemporaryDirectory() as work:
        folder = _photographs(Path(work), n)
        index_folder(folder, Path(work) / "c", "pixels", _SETTINGS, seed)
        with served(Path(work) / "c") as (port, process):
            return {**_asked(port, process, seconds, searches), **_seen(port)}


def _photographs(work: Path, n: int) -> Path:
    found = Path(os.environ.get("MANIFIND_DATA", "nowhere")) / "paris1274" / "images"
    if found.is_dir() and n >= 1274:
        return found
    import numpy as np
    from PIL import Image

    (work / "painted").mkdir()
    for number in range(n):
        pixels = np.random.default_rng(number).integers(0, 255, size=(12, 16, 3), dtype=np.uint8)
        Image.fromarray(pixels).resize((160, 120)).save(work / "painted" / f"{number:05}.jpg")
    return work / "painted"


@contextmanager
def served(path: Path) -> Any:
    """The port of a server in a process of its own, and the process."""
    command = [sys.executable, "-m", "manifind", "serve", str(path), "--port", "0"]
    wide = {**os.environ, "COLUMNS": "300", "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=wide) as process:
        line = (process.stdout or sys.stdin).readline()
        yield int(line.rstrip("/\n").rpartition(":")[2]), process
        process.terminate()


def _asked(port: int, process: Any, seconds: float, searches: int) -> dict[str, float]:
    import clients
    import numpy as np

    ids = []
    while True:
        address = f"http://127.0.0.1:{port}/api/v1/items?limit=500&offset={len(ids)}"
        with urllib.request.urlopen(address) as answer:
            page = json.load(answer)["items"]
        if not page:
            break
        ids += [item["id"] for item in page]
    paths = [f"/api/v1/search?id={quote(id_)}&k=24" for id_ in ids]
    clients.ask(port, paths, CLIENTS, 600, len(paths))  # every item once, before anything is measured
    before = resident_bytes(process.pid)
    clients.ask(port, paths, CLIENTS, 600, searches)
    growth = resident_bytes(process.pid) - before
    found = clients.ask(port, paths, CLIENTS, seconds)
    p50, p95, p99 = np.percentile(np.array(found.seconds) * 1000, (50, 95, 99))
    return {
        "p50_ms": float(p50),
        "p95_ms": float(p95),
        "p99_ms": float(p99),
        "per_second": len(found.seconds) / seconds,
        "errors": float(found.errors),
        "growth_MB": growth / 1e6,
    }


def resident_bytes(pid: int) -> int:
    """Memory that a process has at this moment."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


def _seen(port: int) -> dict[str, float]:
    """What a browser sees; nothing where there is none."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        return {}
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=_FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 860})
        page.goto(f"http://127.0.0.1:{port}/", wait_until="networkidle")
        paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        sizes = page.evaluate(
            "['resource', 'navigation'].flatMap((x) => performance.getEntriesByType(x)).map((x) => x.transferSize)"
        )
        frames = page.evaluate(_PAN, 50_000)
        browser.close()
    return {"paint_ms": paint, "megabytes": sum(sizes) / 1e6, "frames_per_second": frames}
