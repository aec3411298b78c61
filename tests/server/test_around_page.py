"""Around every view, in a real browser: faults in words, tokens, messages, paths, other sites, hostile ids."""

import pytest
from playwright.sync_api import expect
from starlette.applications import Starlette
from starlette.routing import Mount

import manifind
from manifind.server.app import make_app
from manifind.server.jobs import JobState
from manifind.server.middleware import AccessRules
from manifind.server.several import ServedCollections
from server.live import a_browser, another_site, keep, running, serving
from server.made import SMALL, app_of, make_pictures, make_service, make_vectors
from server.pages import a_page, axe_findings, until

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def browser():
    with a_browser() as one:
        yield one


@pytest.fixture(scope="module")
def service(folder):
    make_pictures(folder / "seen", folder / "seen-photos")
    return make_service(folder / "seen", folder)


@pytest.fixture(scope="module")
def address(service):
    with serving(service, can_edit=True) as one:
        yield one


@pytest.fixture(scope="module")
def many(folder):
    """Three hundred items, more than are loaded at once."""
    make_vectors(folder / "many", 300)
    with serving(make_service(folder / "many", folder)) as one:
        yield one


@pytest.fixture
def page(browser):
    with a_page(browser) as one:
        yield one


def forgive(page):
    """Leave a page that was refused something: that is what the test is about."""
    page.goto("about:blank")
    page.complaints[:] = [one for one in page.complaints if not one.startswith("Failed to load resource")]


def names(page):
    return page.locator(".grid .label").all_text_contents()


def results(page):
    page.wait_for_selector(".card .facts")
    return names(page)


def test_an_item_that_is_none_is_said_in_words(page, address):
    page.goto(f"{address}/?q=id:nobody")
    expect(page.get_by_role("alert").first).to_contain_text("there is no item 'nobody'")
    page.goto(f"{address}/?q=id:north/1.png&q=text:boat")
    expect(page.get_by_role("alert").first).to_contain_text("there is no item 'north/1.png'")
    forgive(page)


def test_a_server_that_does_not_answer_is_said_in_words_and_asked_again(page, many):
    page.goto(many)
    page.wait_for_selector(".card")
    page.context.set_offline(True)
    page.get_by_role("button", name="More like 7", exact=True).click()
    alert = page.locator("main").get_by_role("alert")
    expect(alert).to_contain_text("The server does not answer")
    expect(alert).not_to_contain_text("fetch")
    keep(page, "no-answer")
    page.context.set_offline(False)
    page.get_by_role("button", name="Try again").press("Enter")
    assert results(page)[0] == "7"
    page.context.set_offline(True)
    page.locator(".card .open").last.focus()
    expect(alert).to_contain_text("The server does not answer")
    page.context.set_offline(False)
    n = page.locator(".card").count()
    page.get_by_role("button", name="Try again").press("Enter")
    until(page, f"document.querySelectorAll('.card').length > {n}")
    forgive(page)


HOSTILE = [
    "<img src=x onerror=alert(1)>", "a\nb", "\u202egnp.evil", "it's \\ 'quoted'", "a&q=id:b#c?d", "%41", "q+w e",
    "-id:x", "id@1,2,3,4:x", "日本 ё", "../../etc", "javascript:alert(1)",
]  # fmt: skip


def test_ids_of_any_text_are_shown_as_text_and_survive_the_address(browser, tmp_path):
    _, X = make_vectors(tmp_path / "unused", 12)
    fields = [{"o'clock <b>": at, "not": id_} for at, id_ in enumerate(HOSTILE)]
    manifind.GradNet(**{**SMALL, "n_neighbors": 4}, random_state=0).fit(X).save(tmp_path / "c", HOSTILE, fields)
    with serving(make_service(tmp_path / "c", tmp_path)) as address, a_page(browser) as page:
        for at, id_ in enumerate(HOSTILE):
            page.goto(address)
            page.get_by_role("button", name="More like").nth(at).click()
            page.wait_for_selector(".card .facts")
            assert page.evaluate("document.querySelector('.card').dataset.id") == id_
            page.reload()
            page.wait_for_selector(".card .facts")
            assert page.locator(".card .open").first.get_attribute("title") == id_
            page.get_by_role("button", name="Filter", exact=True).click()
            page.get_by_role("group", name="o'clock <b>").get_by_label("from").fill(str(at))
            page.get_by_role("group", name="not").get_by_role("checkbox").nth(0).wait_for()
            page.evaluate(
                """(id) => [...document.querySelectorAll('.choices li')]
                .find((one) => one.querySelector('bdi').textContent === id).querySelector('input').click()""",
                id_,
            )
            page.get_by_role("button", name="Show 1 item").click()
            expect(page.locator(".card")).to_have_count(1)
            assert page.evaluate("document.querySelector('.card').dataset.id") == id_
            assert page.locator("main :is(b, img)").count() == 0
        keep(page, "hostile")


def test_a_token_is_typed_and_stays_out_of_the_address(browser, folder, service):
    token = "a-token-of-many-characters"
    with serving(make_service(folder / "seen", folder), token=token) as address, a_page(browser) as page:
        page.goto(f"{address}/?q=id:north/01.png")
        page.get_by_label("Token").fill("something else")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert").first).to_contain_text("not the token of this server")
        keep(page, "token")
        assert axe_findings(page) == []
        page.get_by_label("Token").fill(token)
        page.keyboard.press("Enter")
        page.wait_for_selector(".grid img[src^='blob:']")
        assert token not in page.url
        page.reload()
        page.wait_for_selector(".grid img[src^='blob:']")
        page.goto(f"{address}/api")
        page.wait_for_selector("#paths h2")
        forgive(page)


def test_a_token_at_the_end_of_the_address_is_taken_off_it(browser, folder, service):
    token = "a-token-of-many-characters"
    with serving(make_service(folder / "seen", folder), token=token) as address, a_page(browser) as page:
        page.goto(f"{address}/?q=id:north/01.png#token={token}")
        page.wait_for_selector(".grid img[src^='blob:']")
        assert token not in page.url


def test_messages_leave_by_themselves_and_problems_stay_until_they_are_closed(page, address):
    page.clock.install()
    page.goto(address)
    page.wait_for_selector(".card")
    script = (
        "import('/static/toast.js').then(({ say }) => { say('all is well'); say('all is lost', { problem: true }) })"
    )
    page.evaluate(script)
    expect(page.locator(".toast")).to_have_count(2)
    page.clock.fast_forward(60_000)
    expect(page.locator(".toast")).to_contain_text(["all is lost"])
    page.get_by_role("button", name="Close the message").press("Enter")
    expect(page.locator(".toast")).to_have_count(0)


def test_a_message_said_in_a_dialog_is_seen_there_and_stays_when_that_closes(page, address):
    page.goto(f"{address}/?show=north/01.png")
    expect(page.locator("dialog.viewer")).to_be_visible()
    page.evaluate("import('/static/toast.js').then(({ say }) => say('all is lost', { problem: true }))")
    expect(page.locator("dialog .toast")).to_be_visible()
    page.locator("dialog.viewer").get_by_role("button", name="Close", exact=True).click()
    expect(page.locator("body > .toasts .toast")).to_be_visible()


def test_a_folder_that_went_away_is_said_once_with_what_to_do(browser, tmp_path):
    make_pictures(tmp_path / "c", tmp_path / "photos")
    with serving(make_service(tmp_path / "c", tmp_path)) as address, a_page(browser) as page:
        (tmp_path / "photos").rename(tmp_path / "elsewhere")
        page.goto(address)
        warning = page.locator("#warnings .problem")
        expect(warning).to_have_count(1)
        expect(warning).to_contain_text("photos")
        expect(warning).to_contain_text("--images")
        expect(page.locator(".card .none").first).to_have_text("north/01.png")
        keep(page, "warning")
        page.goto(f"{address}/?q=id:north/01.png")
        page.get_by_role("button", name="Close this warning").press("Enter")
        expect(warning).to_have_count(0)
        page.reload()
        page.wait_for_selector(".card")
        expect(warning).to_have_count(0)
        forgive(page)


def test_below_a_path_every_address_stays_below_it(browser, service):
    app = Starlette(routes=[Mount("/below/a/path", app_of(service))])
    with running(app) as server, a_page(browser) as page:
        base, asked = f"{server}/below/a/path/", []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(base)
        page.get_by_role("button", name="More like north/01.png").click()
        results(page)
        assert page.url == f"{base}?q=id:north/01.png"
        for view, there in {
            "Map": "canvas",
            "Collection": ".facts-table",
            "Search": ".card",
            "API": "#paths h2",
        }.items():
            page.locator("nav").get_by_role("link", name=view).click()
            page.wait_for_selector(there)
        assert page.url == f"{base}api"
        assert [one for one in asked if not one.startswith((base, "blob:"))] == []


def test_one_of_several_collections_leads_to_all_of_them(browser, folder, service):
    with running(make_app(ServedCollections([folder / "seen"]), AccessRules())) as server, a_page(browser) as page:
        page.goto(f"{server}/c/seen/?q=id:north/01.png")
        assert results(page)[0] == "01.png"
        page.get_by_role("link", name="All collections").press("Enter")
        page.wait_for_url(f"{server}/")
        page.go_back()
        assert results(page)[0] == "01.png"


def test_the_first_view_is_at_most_a_megabyte_and_a_half(page, address):
    sizes = []
    page.on("response", lambda response: sizes.append(len(response.body())))
    page.goto(address)
    page.wait_for_selector(".card img")
    page.wait_for_load_state("networkidle")
    assert len(sizes) > 10
    assert sum(sizes) < 1_500_000


@pytest.fixture
def refits(service, monkeypatch):
    """The refits that were started."""
    started = []
    monkeypatch.setattr(
        service, "refit", lambda: started.append(1) or JobState.waiting("refit").model_copy(update={"state": "failed"})
    )
    return started


FORM = """<form action="{address}/api/v1/refit" method="post" enctype="{kind}">
<input name='{{"a": "' value='"}}'><button>Go on</button></form>"""


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
@pytest.mark.parametrize("kind", ["text/plain", "multipart/form-data", "application/x-www-form-urlencoded"])
def test_a_form_on_another_site_starts_no_refit(page, address, refits, name, kind):
    with another_site(FORM.format(address=address, kind=kind)) as port:
        page.goto(f"http://{name}:{port}/")
        page.get_by_role("button").click()
        page.wait_for_url(f"{address}/api/v1/refit")
        assert "requests from another site are refused" in page.content()
    assert refits == []
    forgive(page)


def test_a_link_on_another_site_leads_to_the_page_and_not_into_the_api(page, address):
    link = f'<a href="{address}/?q=id:north/01.png">page</a> <a href="{address}/api/v1/items">items</a>'
    with another_site(link) as port:
        page.goto(f"http://localhost:{port}/")
        page.get_by_text("items").click()
        page.wait_for_url(f"{address}/api/v1/items")
        assert "requests from another site are refused" in page.content()
        page.goto(f"http://localhost:{port}/")
        page.get_by_text("page").click()
        assert results(page)[0] == "01.png"
    forgive(page)
