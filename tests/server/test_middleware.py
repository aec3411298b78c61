"""Who may ask: not another site, not under another name, not without the token, not too much."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from manifind.errors import InputError
from manifind.server.app import is_loopback, open_socket, read_token
from manifind.server.jobs import JobState
from manifind.server.middleware import _host_of, _origin
from server.made import HOST, app_of, make_service, make_vectors

API = "/api/v1"
TOKEN = "a-token-of-many-characters"


@pytest.fixture(scope="module")
def service(folder):
    make_vectors(folder / "guarded")
    return make_service(folder / "guarded", folder)


@pytest.fixture
def client_with(service):
    def make(**rules):
        return TestClient(app_of(service, **rules), base_url=HOST)

    return make


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "0.0.0.0", "[::2]", "a b", "[bad"])
def test_another_name_is_refused_so_that_no_name_can_be_bound_to_this_address(client_with, host):
    answer = client_with().get("/healthz", headers={"host": host})
    assert answer.status_code == 403
    assert "name" in answer.json()["error"]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8000", "localhost:1", "[::1]:80", "LOCALHOST"])
def test_our_own_names_are_known(client_with, host):
    assert client_with().get("/healthz", headers={"host": host}).status_code == 200


FOREIGN = [
    {"origin": "http://evil.example"},
    {"origin": "null"},
    {"origin": ""},
    {"origin": "http://[bad"},
    {"origin": "http://127.0.0.1.evil.example"},
    {"origin": "http://127.0.0.1:8080"},
    {"origin": "https://127.0.0.1"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"},
    {"sec-fetch-site": "same-site", "origin": "http://127.0.0.1"},
    {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"},
    {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},
]
JSON = {"content-type": "application/json"}


@pytest.fixture
def editing(service, monkeypatch):
    """A client of a server that allows changes, and the refits that it has started."""
    started = []
    monkeypatch.setattr(service, "refit", lambda: started.append(1) or JobState.waiting("refit"))

    def make(**rules):
        return TestClient(app_of(service, True, **rules), base_url=HOST), started

    return make


@pytest.mark.parametrize("headers", FOREIGN)
def test_another_site_is_refused_for_reading_and_for_writing(editing, headers):
    client, started = editing()
    for method in ("POST", "DELETE", "PUT", "OPTIONS"):
        assert client.request(method, f"{API}/refit", headers=headers | JSON).status_code == 403
    for path in (f"{API}/collection", f"{API}/map", f"{API}/refit", "/metrics"):
        assert client.get(path, headers=headers).status_code == 403
        assert client.head(path, headers=headers).status_code == 403
    assert started == []


def test_a_link_from_another_site_opens_the_pages_and_nothing_else(client_with):
    client = client_with()
    for site in ("cross-site", "same-site"):
        followed = {"sec-fetch-site": site, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
        for path in ("/", "/api"):
            assert client.get(path, headers=followed).status_code == 200
        for path in (f"{API}/map", f"{API}/items", "/static/main.js", "/healthz"):
            assert client.get(path, headers=followed).status_code == 403


@pytest.mark.parametrize("passed_on", ["", "/archive"])
def test_below_a_path_of_a_proxy_the_rules_are_the_same(client_with, passed_on):
    client = client_with(token=TOKEN, root_path="/archive", most_at_once=0)
    assert client.get(f"{passed_on}/healthz").status_code == 200  # answered however much is going on
    for path in ("/", "/static/dom.js"):
        assert client.get(f"{passed_on}{path}").status_code == 503
    for path in (f"{API}/items", "/metrics", "/archive/x"):
        assert client.get(f"{passed_on}{path}").status_code == 401
    for path in ("/archive/archive/healthz", "/archived/healthz"):
        assert client.get(path).status_code == 401
    assert client.get(f"{passed_on}{API}/items", headers={"origin": "http://evil.example"}).status_code == 403


@pytest.mark.parametrize(
    ("host", "headers"),
    [
        ("127.0.0.1", {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}),
        ("127.0.0.1", {"sec-fetch-site": "same-origin", "origin": "https://behind.a.proxy"}),
        ("127.0.0.1", {"origin": "http://127.0.0.1"}),
        ("127.0.0.1", {"origin": "http://127.0.0.1:80"}),
        ("localhost:8765", {"origin": "http://localhost:8765"}),
        ("[::1]:8765", {"origin": "http://[::1]:8765"}),
    ],
)
def test_our_own_page_may_ask_and_change_things(editing, host, headers):
    client, started = editing()
    headers = headers | {"host": host}
    assert client.get(f"{API}/collection", headers=headers).status_code == 200
    assert client.post(f"{API}/refit", headers=headers).status_code == 202
    assert started == [1]


@pytest.mark.parametrize(
    "kind", [None, "text/plain", "Text/Plain; charset=utf-8", "multipart/form-data; boundary=x",
             "application/x-www-form-urlencoded"],
)  # fmt: skip
def test_what_a_form_could_send_is_refused_unless_it_shows_where_it_comes_from(editing, kind):
    headers = {} if kind is None else {"content-type": kind}
    client, started = editing(token=TOKEN)
    assert client.post(f"{API}/refit", headers=headers).status_code == 403
    assert "content type" in client.post(f"{API}/refit", headers=headers).json()["hint"]
    assert client.post(f"{API}/refit", headers=headers | {"authorization": "Bearer x"}).status_code == 403
    assert started == []
    own = headers | {"authorization": f"Bearer {TOKEN}"}
    assert client.post(f"{API}/refit", headers=own).status_code == 202


def test_a_program_that_says_what_it_sends_needs_no_browser(editing):
    client, started = editing()
    assert client.post(f"{API}/refit", headers=JSON).status_code == 202
    assert client.post(f"{API}/items/remove", json={"ids": [str(10**6)]}).status_code == 404
    assert started == [1]


@settings(max_examples=200)
@given(st.text(max_size=60), st.text(max_size=60))
def test_any_origin_is_read_or_refused_without_an_error(scheme, text):
    for origin in (text, f"{scheme}://{text}", f"http://{text}"):
        found = _origin(origin)
        assert found is None or (found[1] and found[2] > 0)


def test_without_the_token_nothing_of_the_collection_is_told(client_with):
    client = client_with(token=TOKEN)
    for path in (f"{API}/nowhere", "/nowhere", "/c/x/static", "/static"):
        assert client.get(path).status_code == 401
    for path in (f"{API}/collection", f"{API}/items", f"{API}/jobs", f"{API}/openapi.json", "/metrics"):
        assert client.get(path).status_code == 401
        assert client.get(path, headers={"authorization": "Bearer wrong"}).status_code == 401
        assert client.get(path, headers={"authorization": TOKEN}).status_code == 401
        assert client.get(path, headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert client.get("/healthz").status_code == 200
    assert client.get("/").status_code == 200


def test_a_body_that_is_too_large_is_refused_by_its_length_and_by_its_bytes(client_with):
    client = client_with(most_bytes=1 << 20)
    large = b"x" * ((1 << 20) + 1)
    headers = {"content-type": "image/png"}
    assert client.post(f"{API}/search/picture", content=large, headers=headers).status_code == 413

    def trickle():
        for _ in range(17):
            yield b"x" * (1 << 16)

    assert client.post(f"{API}/search/picture", content=trickle(), headers=headers).status_code == 413
    for length in ("-1", "1e3", "²", "9" * 40):
        answer = client.get("/healthz", headers={"content-length": length.encode()})
        assert answer.status_code == 400


def test_more_requests_than_are_allowed_at_once_are_told_to_come_back(client_with):
    client = client_with(most_at_once=0)
    answer = client.get("/")
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    assert client.get("/healthz").status_code == 200


def test_json_has_fewer_bytes_than_a_picture_since_it_is_parsed_while_everybody_waits(client_with):
    client = client_with(most_json_bytes=1 << 20)
    large = b'{"vector": [' + b"1," * (1 << 19) + b"1]}"
    path = f"{API}/search/vector"
    assert client.post(path, content=large, headers=JSON).status_code == 413
    assert client.post(path, content=iter([large]), headers=JSON).status_code == 413
    assert client.post(path, content=large, headers={"content-type": "image/png"}).status_code == 422


def test_what_takes_too_long_is_ended_in_words(client_with, service, monkeypatch):
    import time

    monkeypatch.setattr(service, "facts", lambda _: time.sleep(0.5) or {})
    answer = client_with(seconds=0.05).get(f"{API}/collection")
    assert answer.status_code == 503
    assert "longer than" in answer.json()["error"]


def test_every_answer_has_a_strict_policy_and_no_cookie(client_with):
    client = client_with()
    for path in ("/", "/api", "/static/main.js", f"{API}/collection", f"{API}/nowhere"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "set-cookie" not in headers
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd"]
)
def test_only_the_files_of_the_page_are_served(client_with, path):
    answer = client_with().get(path)
    assert answer.status_code == 404
    assert "import" not in answer.text


def test_metrics_count_by_the_paths_of_the_api_and_nothing_else(client_with):
    client = client_with()
    client.get(f"{API}/search", params={"id": 1})
    for number in range(5):
        client.get(f"/nowhere/{number}")
    text = client.get("/metrics").text
    assert 'manifind_requests_total{method="GET",path="/api/v1/search",status="200"} 1.0' in text
    assert "manifind_items 40.0" in text
    assert "/nowhere/" not in text


def test_the_page_asks_no_other_host(client_with):
    from manifind.server import app

    for file in app._STATIC.glob("*"):
        text = file.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text, file.name
        assert "https://" not in text, file.name


def test_a_token_is_needed_where_others_can_reach_the_address(monkeypatch, tmp_path):
    monkeypatch.delenv("MANIFIND_TOKEN", raising=False)
    assert read_token("127.0.0.1", None) is None
    for host in ("0.0.0.0", "192.0.2.1", "::", "example.org"):
        with pytest.raises(InputError, match="a token is needed"):
            read_token(host, None)
    monkeypatch.setenv("MANIFIND_TOKEN", TOKEN)
    assert read_token("0.0.0.0", None) == TOKEN
    (tmp_path / "token").write_text(f"{TOKEN}-from-a-file\n")
    assert read_token("0.0.0.0", tmp_path / "token") == f"{TOKEN}-from-a-file"


@pytest.mark.parametrize(
    "token", ["", "short", "with a space in it all", "ümläute-sind-keine-zeichen", "new\nline-in-the-token"]
)
def test_a_weak_token_is_refused_without_being_repeated(monkeypatch, token):
    monkeypatch.setenv("MANIFIND_TOKEN", token)
    with pytest.raises(InputError) as refusal:
        read_token("0.0.0.0", None)
    assert not token.strip() or token not in str(refusal.value)


def test_a_token_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_token("0.0.0.0", tmp_path / "none")


def test_a_port_that_is_taken_is_named():
    with open_socket("127.0.0.1", 0) as taken, pytest.raises(InputError, match="cannot listen"):
        open_socket("127.0.0.1", taken.getsockname()[1])


def test_loopback_is_told_from_the_rest():
    assert [host for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost", "0.0.0.0", "x") if is_loopback(host)] == [
        "127.0.0.1", "127.9.9.9", "::1", "localhost",
    ]  # fmt: skip


@settings(max_examples=200)
@given(st.text(max_size=60))
def test_any_host_is_read_or_refused_without_an_error(text):
    assert isinstance(_host_of(text), str)
