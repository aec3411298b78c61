"""Requests as people who mean harm send them: no fault, no growth, and the next answer as good as the first."""

import http.client
import json
import resource
from urllib.parse import quote, urlsplit

import numpy as np
import pytest

from collection.small_collection import files_of
from images.hostile import KINDS, bombs, mutated, picture_bytes
from server.live import serving
from server.made import make_pictures, make_service

API = "/api/v1"
TRICKS = [
    "../../../../etc/passwd", "..%2f..%2fetc%2fpasswd", "/etc/passwd", "file:///etc/passwd", "C:\\windows\\win.ini",
    "\0", "a\0b.png", "%00", "%", "%zz", "north/../north/01.png", "NaN", "1e999", "-1", "0x10", "' OR 1=1 --",
    "<script>alert(1)</script>", "\r\nset-cookie: a=b", "ü猫\u202e", "\ud800", "a" * 5000, "*", "~", "$(id)", "{}",
    "[]", "north/01.png",
]  # fmt: skip
PATHS = {
    "search": ("id", "upload", "k", "offset", "method", "where"),
    "compare": ("id", "upload", "k", "where"),
    "why": ("id", "upload", "result"),
    "items": ("offset", "limit", "where", "name", "cluster"),
    "fields": ("where",),
    "original": ("id",),
    "changes": ("step",),
    "judgements": ("name",),
    "duplicates": ("offset", "limit"),
    "timeline": ("where",),
    "places": ("where", "degrees", "south", "west", "north", "east"),
    "clusters": ("number",),
    "map/colours": ("field",),
    "map/ids": ("where",),
    "folders": ("path",),
    "item": ("id",),
    "thumbnail": ("id", "upload"),
    "picture": ("id",),
    "map": ("space",),
}
BODIES = (
    "search/vector", "search/combined", "compare/combined", "items", "items/remove", "labels", "undo", "judgements",
    "judgements/of", "exports", "index", "refit",
)  # fmt: skip
_GROWTH = 300 << 10  # kB


def queries(rng):
    """A GET with a trick in every parameter, or in the path itself."""
    path = str(rng.choice([*PATHS, "jobs", "exports", "static"]))
    if path in ("jobs", "exports", "static"):
        trick = str(rng.choice(TRICKS)).encode("utf-8", "surrogatepass")
        prefix = "/static/" if path == "static" else f"{API}/{path}/"
        return "GET", prefix + quote(trick, safe="/.%"), b"", {}
    given = {"id": "north/01.png", "result": "south/02.png"} if rng.random() < 0.5 else {}
    for name in PATHS[path]:
        if rng.random() < 0.6:
            given[name] = str(rng.choice(TRICKS))
    text = "&".join(f"{name}={quote(value.encode('utf-8', 'surrogatepass'))}" for name, value in given.items())
    return "GET", f"{API}/{path}?{text}", b"", {}


def uploads(rng):
    """A picture that is none, or none that one would want, under some kind."""
    kind = str(
        rng.choice(["image/png", "image/jpeg", "application/octet-stream", "text/html", "", "image/" + "x" * 300])
    )
    if rng.random() < 0.1:
        data = list(bombs().values())[int(rng.integers(len(bombs())))]
    else:
        seed = int(rng.integers(1 << 30))
        data = mutated(picture_bytes(str(rng.choice(KINDS)), seed), seed)
    path = str(rng.choice(["search/picture", "pictures"]))
    return "POST", f"{API}/{path}?k={int(rng.integers(1, 5))}", data, {"content-type": kind}


def bodies(rng):
    """JSON that is none, multipart that is broken, lengths that are too long."""
    path = str(rng.choice([*BODIES, "search/picture", "pictures"]))
    trick = str(rng.choice(TRICKS)).encode("utf-8", "replace").decode()
    made = [
        (json.dumps({"ids": [trick], "add": [trick], "remove": [trick]}).encode(), "application/json"),
        (json.dumps({"ids": [trick], "kind": "csv"}).encode(), "application/json"),
        (json.dumps({"ids": ["north/01.png"] * 10_001, "kind": "pictures"}).encode(), "application/json"),
        (json.dumps({"parts": [{"id": trick}, {"text": trick}], "right": [trick]}).encode(), "application/json"),
        (json.dumps({"parts": [{"id": "north/01.png", "weight": 0}]}).encode(), "application/json"),
        (json.dumps({"parts": [{"vector": [1e300] * 1024}], "right": ["south/02.png"]}).encode(), "application/json"),
        (json.dumps({"folder": trick, "watch": True}).encode(), "application/json"),
        (b'{"step": 1e400}', "application/json"), (b'{"step": -1}', "application/json"),
        (b"{", "application/json"), (b"null", "application/json"), (b"[" * 100_000, "application/json"),
        (b'{"vector": [NaN, 1e999, -0]}', "application/json"), (b'{"vector": "x"}', "application/json"),
        (json.dumps({"vector": [0.0] * 1024}).encode(), "application/json"),
        (json.dumps({"vector": [1e38] * 1024, "where": "path >"}).encode(), "application/json"),
        (json.dumps({"items": [{"vector": [1.0], "id": 1}]}).encode(), "application/json"),
        (b'{"vector": [1], "vector": [2], "__proto__": {}}', "application/json"), (b"\xff\xfe", "application/json"),
        (b"--x\r\ncontent-disposition: form-data; name=a; filename=../../b\r\n\r\n", "multipart/form-data; boundary=x"),
        (b"--", "multipart/form-data"), (b"a=b&" * 1000, "application/x-www-form-urlencoded"),
        (b"\0" * (3 << 20), "image/png"),
    ]  # fmt: skip
    data, kind = made[int(rng.integers(len(made)))]
    return "POST", f"{API}/{path}", data, {"content-type": kind}


def strangers(rng):
    """Other methods, hosts, origins and headers."""
    method = str(rng.choice(["PUT", "PATCH", "OPTIONS", "TRACE", "DELETE", "HEAD", "GET", "FOO"]))
    headers = {"host": "evil.example"} if rng.random() < 0.2 else {}
    headers |= {"origin": "http://evil.example"} if rng.random() < 0.3 else {}
    headers |= {"authorization": "Bearer " + "x" * 3000} if rng.random() < 0.3 else {}
    path = str(
        rng.choice(["/", f"{API}/items?id=nobody", f"{API}/refit", "/metrics", "//", "/%2e%2e/", f"{API}/search?id=1"])
    )
    return method, path, b"", headers


def send(address, method, path, data, headers):
    """The status, over a connection of its own."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    try:
        connection.request(method, path, data or None, headers)
        answer = connection.getresponse()
        body = answer.read()
        return answer.status, body, answer.headers
    except (http.client.HTTPException, ValueError, ConnectionError):
        return 0, b"", {}  # our own client refused to send it, or the server to read on
    finally:
        connection.close()


@pytest.mark.long
@pytest.mark.parametrize("n", [250, pytest.param(2000, marks=pytest.mark.endurance)])
def test_no_request_makes_a_fault_or_lets_the_server_grow(tmp_path, n):
    make_pictures(tmp_path / "c", tmp_path / "photos")
    (tmp_path / "photos.secret").write_text("root:x:0:0")
    rng, written = np.random.default_rng(n), files_of(tmp_path / "c")
    with serving(make_service(tmp_path / "c", tmp_path), most_bytes=2 << 20) as address:
        good = send(address, "GET", f"{API}/search?id=north/01.png&k=5", b"", {})
        assert good[0] == 200
        send(address, *uploads(rng))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        statuses = []
        for number in range(n):
            made = (queries, uploads, bodies, strangers)[number % 4](rng)
            status, body, headers = send(address, *made)
            assert status < 500, (status, made[:2], made[3], body[:300])
            assert b"root:x:0:0" not in body
            assert "set-cookie" not in headers
            statuses.append(status)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < _GROWTH
        assert send(address, "GET", f"{API}/search?id=north/01.png&k=5", b"", {})[:2] == good[:2]
    assert files_of(tmp_path / "c") == written  # nobody was allowed to change anything
    assert {200, 403, 404, 413, 415, 422} <= set(statuses)
    assert statuses.count(0) < n / 10
