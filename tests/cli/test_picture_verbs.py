"""A folder of pictures from the command line: indexed, searched by picture, shown on a page."""

import json

from pictures.painted import paint_many


def test_a_folder_is_indexed_and_searched_by_picture(command, refused, tmp_path):
    folder = paint_many(tmp_path / "photos")
    path = tmp_path / "p.gradnet"
    (folder / "broken.jpg").write_text("hello")
    told = command("index", folder, path, "--describer", "pixels")
    assert "20 added; 0 unchanged" in told.out
    assert "is no picture of a known kind" in told.out
    told = json.loads(command("index", folder, path, "--describer", "pixels", "--json").out)
    assert told["unchanged"] == 20
    assert told["problems"] == [{"path": "broken.jpg", "reason": "is no picture of a known kind"}]
    asked = [folder / "north" / "01.png", folder / "south" / "02.png"]
    answers = json.loads(command("search", path, *asked, "-k", 2, "--json").out)
    assert [answer["results"][0]["id"] for answer in answers] == ["north/01.png", "south/02.png"]
    page = tmp_path / "answers.html"
    assert command("search", path, "north/01.png", "--page", page).code == 0
    assert page.read_text().count("data:image/jpeg;base64,") == 11
    problem, _ = refused("search", path, folder / "broken.jpg")
    assert "is no picture of a known kind" in problem
    problem, _ = refused("index", folder, path, "--describer", "nonsense")
    assert "describer = 'nonsense'" in problem


def test_what_would_be_ignored_is_refused(refused, files, tmp_path):
    folder = paint_many(tmp_path / "photos")
    problem, _ = refused("index", folder, tmp_path / "c", "--metadata", tmp_path / "x.csv")
    assert "is for vectors" in problem
    problem, _ = refused("index", files / "vectors.npy", tmp_path / "c", "--describer", "pixels")
    assert "is no folder of pictures" in problem


def test_a_new_collection_is_fitted_once_and_an_old_one_anew_when_asked(command, tmp_path):
    folder, path = paint_many(tmp_path / "photos"), tmp_path / "c"
    made = json.loads(command("index", folder, path, "--describer", "pixels", "--refit", "--json").out)
    assert not made["refitted"]
    again = json.loads(
        command("index", folder, path, "--describer", "pixels", "--refit", "--seed", 3, "--json").out
    )
    assert again["refitted"]
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".")]
