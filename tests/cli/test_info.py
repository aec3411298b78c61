"""`manifind info`: a few sentences that are true of the collection, and every number for who asks."""

import json
import re
import shutil

import numpy as np
import pytest

import manifind
from cli.conftest import NAMES
from collection.crafting import change_manifest, set_manifest
from images.painted import paint, paint_many


def sentences(printed):
    """What stands behind each word before the first table or empty line, on one line each."""
    found, name = {}, ""
    for line in printed.splitlines()[1:]:
        if not line.strip() or line[0] in "┏│" or line.startswith("every number"):
            break
        start = re.match(r"([a-z]+( [a-z]+)?)  +(?=\S)", line)
        name = start[1] if start else name
        found[name] = f"{found.get(name, '')} {line[start.end() if start else 0 :].strip()}".strip()
    return found


@pytest.fixture(scope="module")
def photos(command, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    paint_many(folder / "photos")
    command("index", folder / "photos", folder / "c", "--extractor", "pixels")
    return folder


@pytest.fixture
def mine(named, tmp_path):
    return shutil.copytree(named, tmp_path / "mine.manifind")


def test_a_collection_of_vectors_is_described_in_words(command, named):
    said = sentences(command("info", named).out)
    collection = manifind.load(named)
    size = sum(file.stat().st_size for file in (named / "segments").iterdir())
    assert said["holds"] == f"40 vectors; {size / 1000:.3g} kB with all that was learned"
    assert said["vectors"] == "6 numbers each, computed elsewhere"
    assert said["fitted"].startswith(f"on {collection.manifest['created'][:10]}: 40 items, ")
    assert f"{collection.info['edges']} edges, 2 steps in " in said["fitted"]
    assert said["since then"] == "nothing has come or gone"
    assert said["files"] == "complete by size; --verify reads every byte"
    assert said["duplicates"] == "none"
    assert sentences(command("info", named, "--verify").out)["files"] == "every byte is as it was written"


def test_a_collection_of_pictures_names_its_folder_and_its_extractor(command, photos):
    printed = command("info", photos / "c").out
    said = sentences(printed)
    assert said["holds"].startswith(f"20 pictures of {photos / 'photos'}; ")
    assert said["extractor"] == "pixels, 1,024 numbers for each picture; it does not understand words"
    assert said["duplicates"] == "none"
    assert f"search it with: manifind search {photos / 'c'} PICTURE --open" in printed
    change_manifest(shutil.copytree(photos / "c", photos / "words"), "source", words=True)
    assert sentences(command("info", photos / "words").out)["extractor"].endswith("it understands words")


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_the_words_fit_the_terminal_and_a_screen_of_24_lines(command, photos, width):
    printed = command("info", photos / "c", columns=width).out
    words = printed.split("\n\n")[0].splitlines()[1:]
    assert max(map(len, words)) <= width
    if width >= 80:
        assert len(printed.splitlines()) <= 24


@pytest.mark.parametrize(
    ("agreement", "share", "said"),
    [
        (
            0.63,
            1.0,
            "two halves of the descriptors agree on 63% of an item's nearest neighbours, so there is something",
        ),
        (0.12, 0.2, "agree on only 12% of an item's nearest neighbours, so there is little to learn"),
        (None, 1.0, "whether neighbours mean anything here was not measured"),
    ],
    ids=["structure", "noise", "not measured"],
)
def test_whether_it_can_be_trusted_is_said_by_what_was_measured(command, mine, agreement, share, said):
    change_manifest(mine, "info", neighbour_agreement=agreement, trust=share, neighbours_kept=0.5)
    assert said in sentences(command("info", mine).out)["trust"]


def test_what_has_changed_is_said_and_what_to_do_where_it_is_much(command, mine):
    command("remove", mine, *NAMES[:2])
    printed = command("info", mine).out
    assert sentences(printed)["since then"] == "0 added, 2 removed: 5.0% of what was fitted"
    assert "--refit" not in printed
    command("remove", mine, *NAMES[2:4])
    printed = command("info", mine).out
    assert sentences(printed)["since then"] == "0 added, 4 removed: 10.0% of what was fitted"
    assert f"to learn from what has changed: manifind index SOURCE {mine} --refit" in printed
    manifind.refit(manifind.load(mine))
    said = sentences(command("info", mine).out)
    assert said["fitted"].startswith("anew on ")
    assert ": 36 items, " in said["fitted"]
    assert said["since then"] == "nothing has come or gone"


def test_drift_is_said_where_there_is_any(command, mine):
    assert sentences(command("info", mine, "--drift").out)["drift"].startswith("not measured: ")
    manifind.load(mine).add(np.random.default_rng(3).normal(size=(3, 6)), ids=["a", "b", "c"])
    assert re.match(
        r"of its nearest neighbours a fitted item keeps \d+% in a new fit, and an added one \d+%; ",
        sentences(command("info", mine, "--drift").out)["drift"],
    )


def test_how_well_it_is_searched_is_said_when_asked(command, mine, monkeypatch):
    assert sentences(command("info", mine, "--index").out)["features"] == "searched exactly"
    quality = {"codes": "sq8", "n_lists": 9, "n_probes": 3, "recall": 0.9876, "bytes_per_item": 71.5}
    monkeypatch.setattr(manifind.Collection, "index_quality", lambda _: {"descriptors": quality})
    said = sentences(command("info", mine, "--index").out)["descriptors"]
    assert said == "searched by codes sq8 of 72 bytes for an item, which find 98.8% of the true nearest"


def test_duplicates_are_counted_in_words_and_listed_when_asked(command, photos, tmp_path):
    folder = shutil.copytree(photos / "photos", tmp_path / "photos")
    for copy in ("copy.png", "again.png"):
        shutil.copyfile(folder / "north" / "01.png", folder / copy)
    command("index", folder, tmp_path / "c", "--extractor", "pixels")
    printed = command("info", tmp_path / "c").out
    could_go = "2 pictures could be removed as copies of others, 2 of them exact; --duplicates lists them"
    assert sentences(printed)["duplicates"] == could_go
    assert "north/01.png" not in printed
    assert "again.png, copy.png, north/01.png" in command("info", tmp_path / "c", "--duplicates").out
    nothing = command("info", photos / "c", "--duplicates").out
    assert sentences(nothing)["duplicates"] == "none"
    assert "┃" not in nothing, "a table of nothing"


def test_vectors_that_are_equal_are_counted(command, items, tmp_path):
    np.save(tmp_path / "x.npy", np.concatenate([items, items[:3]]))
    command("index", tmp_path / "x.npy", tmp_path / "c")
    said = sentences(command("info", tmp_path / "c").out)
    assert said["duplicates"] == "3 vectors could be removed as equal to others; --duplicates lists them"


def test_a_folder_that_is_not_known_or_not_there_is_said_with_what_to_do(command, tmp_path, monkeypatch):
    folder = tmp_path / "photos"
    for number in range(12):
        paint(folder / f"{number}.png", number)
    command("index", folder, tmp_path / "c", "--extractor", "pixels")
    folder.rename(tmp_path / "elsewhere")
    assert (
        f"12 pictures of {folder}, which is not there now; " in sentences(command("info", tmp_path / "c").out)["holds"]
    )
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another user"))
    printed = command("info", tmp_path / "c").out
    assert "12 pictures from a folder that is not known on this machine; " in sentences(printed)["holds"]
    assert f"to see its pictures: manifind serve {tmp_path / 'c'} --images FOLDER" in printed
    assert str(folder) not in printed, "what a collection says of its folder is not repeated"


def test_a_compressed_collection_says_that_it_only_answers(command, mine, tmp_path):
    command("export", mine, tmp_path / "small", "--to", "compressed")
    said = sentences(command("info", tmp_path / "small").out)
    assert said["holds"].startswith("40 vectors, compressed: it answers, and cannot be changed; ")
    assert re.search(r"; exported on \d{4}-\d\d-\d\d$", said["fitted"])


def test_with_all_every_number_and_every_setting_is_shown_too(command, named):
    printed = command("info", named, "--all").out
    facts = json.loads(command("info", named, "--json").out)
    for name in [*(facts.keys() - {"settings"}), *facts["settings"]]:
        assert re.search(rf"│ {name} +│", printed), name
    assert sentences(printed) == sentences(command("info", named).out)
    assert json.loads(command("info", named, "--all", "--json").out) == facts
    assert "--all" in command("info", named).out


@pytest.mark.parametrize(
    "info",
    [
        {},
        {"edges": "many", "steps": None, "seconds": [1], "device": 3, "neighbour_agreement": "x", "refit": 1},
        {"drift_changed": 1, "duplicates": "x", "index_of_features": {}, "contents": 3, "bytes": [], "extractor": 0},
    ],
    ids=["nothing", "nonsense", "names of ours"],
)
def test_a_fit_that_reports_nothing_or_nonsense_is_still_described(command, mine, info):
    set_manifest(mine, "info", json.dumps(info))
    said = sentences(command("info", mine).out)
    assert re.fullmatch(r"on \d{4}-\d\d-\d\d: 40 items", said["fitted"])
    assert said["trust"] == "whether neighbours mean anything here was not measured"
    assert not {"drift", "features", "extractor"} & said.keys()
    assert command("info", mine, "--all").code == 0


def test_judged_queries_are_counted_and_say_what_they_are_worth(command, mine):
    assert "judged" not in sentences(command("info", mine).out)
    collection, query = manifind.load(mine), manifind.QueryPart(id=NAMES[0])
    collection.judgements.add(query, right=NAMES[1:2])
    assert sentences(command("info", mine).out)["judged"].startswith("1 query, none with an item that is right and")
    collection.judgements.add(query, wrong=NAMES[2:4])
    said = sentences(command("info", mine).out)["judged"]
    scores = collection.judgements.scores()
    assert f"mAP over judged items {scores.gradnet.mean:.1f} by learned features" in said
    assert said.endswith("which may be chance")
