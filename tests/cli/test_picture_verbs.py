"""A folder of pictures from the command line: indexed, searched by picture, shown on a page."""

import json

from images.painted import paint_many


def test_a_folder_is_indexed_and_searched_by_picture(command, refused, tmp_path):
    folder = paint_many(tmp_path / "photos")
    path = tmp_path / "p.manifind"
    (folder / "broken.jpg").write_text("hello")
    printed = command("index", folder, path, "--extractor", "pixels")
    assert "20 added; 0 unchanged" in printed.out
    assert "is no picture of a known kind" in printed.out
    printed = json.loads(command("index", folder, path, "--extractor", "pixels", "--json").out)
    assert printed["unchanged"] == 20
    assert printed["problems"] == [{"path": "broken.jpg", "reason": "is no picture of a known kind"}]
    asked = [folder / "north" / "01.png", folder / "south" / "02.png"]
    answers = json.loads(command("search", path, *asked, "-k", 2, "--json").out)
    assert [answer["results"][0]["id"] for answer in answers] == ["north/01.png", "south/02.png"]
    page = tmp_path / "answers.html"
    assert command("search", path, "north/01.png", "--page", page).code == 0
    assert page.read_text().count("data:image/jpeg;base64,") == 11
    problem, _ = refused("search", path, folder / "broken.jpg")
    assert "is no picture of a known kind" in problem
    problem, _ = refused("index", folder, path, "--extractor", "nonsense")
    assert "extractor = 'nonsense'" in problem


def test_the_former_name_of_the_option_for_extractors_is_accepted_and_not_shown(command, tmp_path):
    folder, path = paint_many(tmp_path / "photos"), tmp_path / "c"
    assert command("index", folder, path, "--describer", "pixels", "--dry-run").code == 0
    for verb in ("index", "search", "serve"):
        assert "--describer" not in command(verb, "--help").out


def test_what_would_be_ignored_is_refused(refused, files, tmp_path):
    problem, _ = refused("index", files / "vectors.npy", tmp_path / "c", "--extractor", "pixels")
    assert "is not a folder of pictures" in problem


def test_a_new_collection_is_fitted_once_and_an_old_one_anew_when_asked(command, tmp_path):
    folder, path = paint_many(tmp_path / "photos"), tmp_path / "c"
    made = json.loads(command("index", folder, path, "--extractor", "pixels", "--refit", "--json").out)
    assert not made["refitted"]
    again = json.loads(command("index", folder, path, "--extractor", "pixels", "--refit", "--seed", 3, "--json").out)
    assert again["refitted"]
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".")]


def test_a_folder_can_be_indexed_again_with_the_settings_that_it_was_indexed_with(command, tmp_path):
    folder, path = paint_many(tmp_path / "photos"), tmp_path / "c"
    given = ("index", folder, path, "--extractor", "pixels", "--n-neighbors", 4, "--seed", 3, "--json")
    assert command(*given).code == 0
    again = command(*given)
    assert again.code == 0, again.err
    assert json.loads(again.out)["unchanged"] == 20


def test_info_tells_what_is_there_twice(command, tmp_path):
    folder, path = paint_many(tmp_path / "photos"), tmp_path / "c"
    (folder / "copy.png").write_bytes((folder / "north" / "01.png").read_bytes())
    command("index", folder, path, "--extractor", "pixels")
    printed = json.loads(command("info", path, "--json").out)
    assert (printed["duplicates"], printed["near_duplicates"]) == (1, 1)
    assert "same" not in printed
    printed = json.loads(command("info", path, "--duplicates", "--json").out)
    assert printed["same"] == [["copy.png", "north/01.png"]]
    assert "copy.png, north/01.png" in command("info", path, "--duplicates").out


def test_a_renamed_file_is_shown_where_it_is_and_found_by_id_path_and_name(command, refused, tmp_path):
    folder, path = paint_many(tmp_path / "photos"), tmp_path / "c"
    command("index", folder, path, "--extractor", "pixels")
    (folder / "north" / "01.png").rename(folder / "south" / "harbour.png")
    printed = json.loads(command("index", folder, path, "--extractor", "pixels", "--json").out)
    assert (printed["moved"], printed["unchanged"]) == (1, 19)
    for asked in ("north/01.png", "south/harbour.png", "harbour.png", "01.png", folder / "south" / "harbour.png"):
        (answer,) = json.loads(command("search", path, asked, "-k", 2, "--json").out)
        assert answer["results"][0]["id"] == "north/01.png"
        assert answer["results"][0]["metadata"]["path"] == "south/harbour.png"
    shown = command("search", path, "harbour.png", "-k", 2).out
    first = next(line for line in shown.splitlines() if "north/01.png" in line)
    assert "path" in shown.splitlines()[2]
    assert "south/harbour.png" in first
    page = tmp_path / "answers.html"
    command("search", path, "harbour.png", "--page", page)
    assert "south/harbour.png (id north/01.png)" in page.read_text()
    problem, hint = refused("search", path, "harbor.png")
    assert "there is no item with the id 'harbor.png'" in problem
    assert "nor a file of that name" in problem
    assert "did you mean 'south/harbour.png'" in hint
    assert "1 removed, 19 left" in command("remove", path, "harbour.png", "south/harbour.png").out


def test_where_every_file_is_where_it_was_no_column_repeats_the_ids(command, tmp_path):
    folder, path = paint_many(tmp_path / "photos"), tmp_path / "c"
    command("index", folder, path, "--extractor", "pixels")
    assert " path " not in command("search", path, "north/01.png", "-k", 2).out


OWN = """
import numpy as np
def corners(images):
    return np.array([np.asarray(image.resize((4, 4))).ravel()[:40] + 1.0 for image in images])
"""


def test_an_extractor_of_ones_own_is_named_once_on_a_machine(command, refused, tmp_path, monkeypatch):
    folder, path, file = paint_many(tmp_path / "photos"), tmp_path / "c", tmp_path / "mine.py"
    file.write_text(OWN)
    own = f"{file}:corners"
    assert command("index", folder, path, "--extractor", own).code == 0
    asked = folder / "north" / "01.png"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another user"))
    problem, hint = refused("search", path, asked)
    assert f"was described by {own}, and you have not named that file" in problem
    assert "--extractor" in hint
    for again in (("--extractor", own), ()):
        answers = json.loads(command("search", path, asked, *again, "-k", 1, "--json").out)
        assert answers[0]["results"][0]["id"] == "north/01.png"
    problem, _ = refused("search", path, "north/01.png", "--extractor", own)
    assert "no query is one" in problem
    file.write_text(OWN + "# other code may describe otherwise\n")
    problem, _ = refused("search", path, asked, "--extractor", own)
    assert "has changed since the pictures were described" in problem
    problem, _ = refused("index", folder, path, "--extractor", f"{file}:edges")
    assert "defines no function called 'edges'; it has corners" in problem


def test_a_collection_is_brought_up_to_date_as_it_was_described(command, refused, tmp_path):
    folder, path = paint_many(tmp_path / "photos"), tmp_path / "c"
    command("index", folder, path, "--extractor", "pixels")
    assert json.loads(command("index", folder, path, "--json").out)["unchanged"] == 20
    problem, _ = refused("index", folder, path, "--extractor", "pixels", "--multi-scale")
    assert "several scales" in problem


def test_methods_are_compared_on_a_collection_with_lists_beside_it(command, refused, tmp_path):
    folder, path = paint_many(tmp_path / "photos"), tmp_path / "c"
    command("index", folder, path, "--extractor", "pixels")
    problem, hint = refused("compare", path, "--methods", "knn")
    assert "no ground truth lies beside" in problem
    assert "--truth" in hint
    names = sorted(file.stem for file in folder.rglob("*.png"))
    lists = [{"ok": [0, 1, 2], "junk": [3], "bbx": [0, 0, 1, 1]}]
    truth = {"imlist": names, "qimlist": [names[0]], "gnd": lists}
    (tmp_path / "gnd_toy.json").write_text(json.dumps(truth))
    results = ("--results", tmp_path / "results.jsonl")
    for where in ((), ("--truth", tmp_path / "gnd_toy.json")):
        asked = ("compare", path, "--methods", "knn", "--protocol", "landmarks", *where, *results, "--json")
        (table,) = json.loads(command(*asked).out)["sets"]
        assert table["items"] == 20
        assert table["queries"] == 3
    problem, _ = refused("compare", "digits", "--truth", tmp_path / "gnd_toy.json")
    assert "is for a collection" in problem
