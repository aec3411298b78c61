"""From files to scores: names are looked up in the ground truth, and everything becomes positions."""

import json

import numpy as np
import pytest

from manifind.errors import FileFormatError, InputError, ManifindError
from manifind.evaluation.files import read_answers, read_judged_queries
from manifind.evaluation.protocols import bullseye, evaluate_labels, evaluate_lists

IMAGES = ["park_01", "park_02", "tower_01", "tower_02", "street_01"]
QUERIES = ["tower_09", "park_09"]
GND = [{"ok": [2, 3], "junk": [4], "bbx": [0, 0, 9, 9]}, {"ok": [0, 1], "junk": []}]
RUN = {"park_09": ["park_01", "street_01", "park_02"], "tower_09": ["street_01", "park_02", "tower_02"]}
EXPECTED = [1 / 2 * (0 / 1 + 1 / 2) / 2, 1 / 2 * (1 + (1 / 2 + 2 / 3) / 2)]  # tower, then park


@pytest.fixture
def write(tmp_path):
    """A file in the test's own folder: text as it is, arrays as .npy, anything else as JSON."""

    def make(name, content):
        path = tmp_path / name
        if isinstance(content, np.ndarray):
            np.save(path, content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return make


def run_of(rankings, name=str):
    return "".join(
        f"{name(query)} Q0 {name(item)} {rank} {-rank} me\n"
        for query, items in rankings.items()
        for rank, item in enumerate(items, 1)
    )


def lists_of(gnd=GND, **names):
    return {"gnd": gnd, "imlist": IMAGES, "qimlist": QUERIES} | names


def folder_of(tmp_path, lists):
    """The ground truth of Oxford as it was published: four text files for each query."""
    for query, (image, right, junk) in lists.items():
        (tmp_path / f"{query}_query.txt").write_text(f"oxc1_{image} 0 0 9 9\n")
        (tmp_path / f"{query}_good.txt").write_text("\n".join(right[:1]))
        (tmp_path / f"{query}_ok.txt").write_text("\n".join(right[1:]))
        (tmp_path / f"{query}_junk.txt").write_text("\n".join(junk))
    return tmp_path


def values(score):
    return (score.per_query / 100).tolist()


def test_a_run_by_names_is_scored_against_published_lists(write):
    question = read_judged_queries(write("gnd.json", lists_of()))
    answers = read_answers(write("mine.run", run_of(RUN)), question)
    assert answers.query_items is None
    assert answers.ids.tolist() == [[4, 1, 3], [0, 4, 1]], "in the order of the ground truth"
    assert values(evaluate_lists(answers.ids, question.truth)[0]) == pytest.approx(EXPECTED)


@pytest.mark.parametrize("name", [lambda n: f"{n}.jpg", lambda n: f"some/folder/{n}.JPEG", lambda n: f"x/{n}"])
def test_a_folder_and_the_suffix_of_a_picture_are_no_part_of_a_name(write, name):
    question = read_judged_queries(write("gnd.json", lists_of()))
    answers = read_answers(write("mine.run", run_of(RUN, name)), question)
    assert answers.ids.tolist() == [[4, 1, 3], [0, 4, 1]]
    decorated = lists_of(imlist=[name(n) for n in IMAGES], qimlist=[name(n) for n in QUERIES])
    answers = read_answers(write("plain.run", run_of(RUN)), read_judged_queries(write("with.json", decorated)))
    assert answers.ids.tolist() == [[4, 1, 3], [0, 4, 1]]


def test_rankings_of_different_lengths_are_filled_up(write):
    question = read_judged_queries(write("gnd.json", lists_of()))
    answers = read_answers(write("mine.run", run_of(RUN | {"tower_09": ["tower_01"]})), question)
    assert answers.ids.tolist() == [[2, -1, -1], [0, 4, 1]]


def test_an_array_of_positions_is_taken_as_it_is(write):
    question = read_judged_queries(write("gnd.json", lists_of()))
    ids = np.array([[4, 1, 3], [0, 4, -1]], dtype=np.int16)
    answers = read_answers(write("mine.npy", ids), question)
    assert answers.ids.tolist() == ids.tolist()
    assert answers.ids.dtype == np.int64
    assert evaluate_lists(answers.ids, question.truth)[0].per_query[0] == pytest.approx(100 * EXPECTED[0])


def test_an_array_of_names_stands_in_the_order_of_the_queries(write):
    question = read_judged_queries(write("gnd.json", lists_of()))
    answers = read_answers(
        write("mine.npy", np.array([["street_01", "tower_02.jpg"], ["park_01", "x/park_02"]])), question
    )
    assert answers.ids.tolist() == [[4, 3], [0, 1]]


def test_a_query_that_nobody_ranked_is_refused_by_name(write):
    question = read_judged_queries(write("gnd.json", lists_of()))
    with pytest.raises(FileFormatError, match="does not rank the query 'park_09'") as error:
        read_answers(write("mine.run", run_of({"tower_09": RUN["tower_09"]})), question)
    assert "rank every query" in error.value.hint


def test_queries_that_the_ground_truth_lacks_are_left_aside(write):
    question = read_judged_queries(write("gnd.json", lists_of()))
    answers = read_answers(write("mine.run", run_of({"house_09": ["park_01"], **RUN})), question)
    assert answers.ids.tolist() == [[4, 1, 3], [0, 4, 1]]


def test_an_item_that_the_whole_database_lacks_is_refused_by_name(write):
    question = read_judged_queries(write("gnd.json", lists_of()))
    path = write("mine.run", run_of(RUN | {"park_09": ["park_01", "house_07"]}))
    with pytest.raises(InputError, match=r"the item 'house_07' of .*mine\.run is not among the 5 names"):
        read_answers(path, question)


def test_an_item_that_a_part_of_the_database_lacks_is_wrong_but_takes_a_rank(write, tmp_path):
    folder = tmp_path / "gt"
    folder.mkdir()
    lists = {
        "park_1": ("park_01", ["park_01", "park_02"], []),
        "tower_1": ("tower_01", ["tower_01", "tower_02"], ["street_01"]),
    }
    question = read_judged_queries(folder_of(folder, lists))
    assert not question.is_whole
    run = {
        "tower_01": ["a/house_01.jpg", "street_01", "tower_02"],
        "park_01": ["park_01", "house_02", "house_01", "park_02"],
    }
    answers = read_answers(write("mine.run", run_of(run)), question)
    score = evaluate_lists(answers.ids, question.truth)[0]
    park, tower = 1 / 2 * (1 + (1 / 3 + 2 / 4) / 2), 1 / 2 * (0 / 1 + 1 / 2) / 2
    assert values(score) == pytest.approx([park, tower])


def test_an_item_that_a_part_of_the_database_lacks_may_not_stand_twice(write, tmp_path):
    folder = tmp_path / "gt"
    folder.mkdir()
    question = read_judged_queries(folder_of(folder, {"park_1": ("park_01", ["park_01", "park_02"], [])}))
    answers = read_answers(write("mine.run", run_of({"park_01": ["house_01", "park_01", "house_01.jpg"]})), question)
    with pytest.raises(InputError, match="at ranks 1 and 3"):
        evaluate_lists(answers.ids, question.truth)


def test_positions_are_refused_where_the_ground_truth_lists_only_a_part(write, tmp_path):
    folder = tmp_path / "gt"
    folder.mkdir()
    question = read_judged_queries(folder_of(folder, {"park_1": ("park_01", ["park_01", "park_02"], [])}))
    path = write("mine.npy", np.array([[0, 1]]))
    with pytest.raises(FileFormatError, match="has positions, but this ground truth does not list") as error:
        read_answers(path, question)
    assert str(path) in error.value.problem
    assert "names" in error.value.hint


def test_lists_without_names_take_positions(write):
    question = read_judged_queries(write("gnd.json", {"gnd": GND}))
    assert (question.items, question.queries) == (None, None)
    answers = read_answers(write("mine.npy", np.array([[4, 1, 3], [0, 4, 1]])), question)
    assert values(evaluate_lists(answers.ids, question.truth)[0]) == pytest.approx(EXPECTED)
    as_text = read_answers(write("text.npy", np.array([["4", "1", "3"], ["0", "4", "1"]])), question)
    assert as_text.ids.tolist() == answers.ids.tolist()


def test_names_are_refused_where_the_lists_have_none(write):
    question = read_judged_queries(write("gnd.json", {"gnd": GND}))
    with pytest.raises(FileFormatError, match="names its queries, but the ground truth does not"):
        read_answers(write("mine.run", run_of(RUN)), question)
    with pytest.raises(FileFormatError, match="but the ground truth names no images") as error:
        read_answers(write("mine.npy", np.array([["park_01"], ["park_02"]])), question)
    assert "park_01" in error.value.problem


@pytest.mark.parametrize("names", [{}, {"imlist": IMAGES}])
def test_a_name_from_an_array_is_quoted_as_a_name_from_a_run_is(write, names):
    question = read_judged_queries(write("gnd.json", {"gnd": GND, **names}))
    with pytest.raises(ManifindError, match="the item 'park_07'"):
        read_answers(write("mine.npy", np.array([["park_07"], ["park_02"]])), question)


def test_lists_that_name_only_their_queries_take_a_run_of_positions(write):
    question = read_judged_queries(write("gnd.json", {"gnd": GND, "qimlist": QUERIES}))
    answers = read_answers(write("mine.run", run_of({"park_09": [0, 4, 1], "tower_09": [4, 1, 3]})), question)
    assert answers.ids.tolist() == [[4, 1, 3], [0, 4, 1]]


@pytest.mark.parametrize("digits", [19, 30, 5000])
def test_a_position_beyond_all_measure_is_refused(write, digits):
    question = read_judged_queries(write("gnd.json", {"gnd": GND, "qimlist": QUERIES}))
    path = write("mine.run", run_of({"park_09": ["9" * digits], "tower_09": [4, 1, 3]}))
    try:
        read_answers(path, question)
    except ManifindError:
        return


def test_revisited_lists_are_read_and_scored(write):
    gnd = [{"easy": [2], "hard": [3], "junk": [4]}, {"easy": [0], "hard": [1], "junk": []}]
    question = read_judged_queries(write("gnd.json", lists_of(gnd)))
    answers = read_answers(write("mine.run", run_of(RUN)), question)
    scores = {score.measure: values(score) for score in evaluate_lists(answers.ids, question.truth)}
    assert scores["mAP medium"] == pytest.approx(EXPECTED)
    assert scores["mAP easy"] == pytest.approx([0, 1])
    assert scores["mAP hard"] == pytest.approx([(0 / 1 + 1 / 2) / 2, (0 / 1 + 1 / 2) / 2])


def test_the_landmark_protocol_asks_for_every_right_image_by_name(write):
    question = read_judged_queries(write("gnd.json", lists_of()), "landmarks")
    assert list(question.queries) == ["tower_01", "tower_02", "park_01", "park_02"]
    run = {name: [other for other in IMAGES if other != name] for name in IMAGES}
    answers = read_answers(write("mine.run", run_of(run)), question)
    score = evaluate_lists(answers.ids, question.truth, protocol="landmarks")[0]
    assert values(score) == pytest.approx([(0 / 2 + 1 / 3) / 2, (0 / 2 + 1 / 3) / 2, 1, 1])


LABELS = "file,label\na.jpg,cat\nb.jpg,dog\nc.jpg,cat\nd.jpg,dog\n"


@pytest.mark.parametrize(
    ("name", "text"), [("labels.csv", LABELS), ("labels.tsv", LABELS.replace(",", "\t")), ("labels.CSV", LABELS)]
)
def test_a_run_is_scored_against_labels_for_whichever_items_it_asks(write, name, text):
    question = read_judged_queries(write(name, text))
    answers = read_answers(write("mine.run", run_of({"x/c": ["b", "a"], "a": ["c.jpg", "b", "d"]})), question)
    assert answers.query_items.tolist() == [2, 0]
    assert answers.ids.tolist() == [[1, 0, -1], [2, 1, 3]]
    score = evaluate_labels(answers.ids, question.truth.values, query_items=answers.query_items)[0]
    assert values(score) == [1 / 2, 1]


def test_labels_without_names_are_asked_by_position(write):
    question = read_judged_queries(write("labels.npy", np.array([7, 5, 7])))
    answers = read_answers(write("mine.run", run_of({"2": ["1", "0"]})), question)
    assert answers.query_items.tolist() == [2]
    assert values(evaluate_labels(answers.ids, question.truth.values, query_items=answers.query_items)[0]) == [1 / 2]
    table = read_judged_queries(write("labels.csv", "label\n7\n5\n7\n"))
    again = read_answers(write("mine.run", run_of({"2": ["1", "0"]})), table)
    assert (again.ids.tolist(), again.query_items.tolist()) == ([[1, 0]], [2])


def test_an_array_against_labels_answers_every_item_in_order(write):
    question = read_judged_queries(write("labels.csv", LABELS))
    positions = np.array([[2, 1], [3, 0], [0, 1], [0, 2]])
    by_position = read_answers(write("mine.npy", positions), question)
    by_name = read_answers(write("names.npy", np.array(["a", "b", "c", "d"])[positions]), question)
    for answers in (by_position, by_name):
        assert answers.query_items is None
        assert answers.ids.tolist() == positions.tolist()
        assert values(evaluate_labels(answers.ids, question.truth.values)[0]) == [1, 1, 1, 0]
        assert bullseye(answers.ids, question.truth.values, 2).value == pytest.approx(100 * 7 / 8)


@pytest.mark.parametrize(
    ("run", "reported"),
    [
        ({"z": ["a"]}, "the query 'z' of .*mine.run is not among the 4 names"),
        ({"a": ["c", "z.jpg"]}, "the item 'z.jpg' of .*mine.run is not among the 4 names"),
    ],
    ids=["query", "item"],
)
def test_names_that_the_labels_lack_are_refused(write, run, reported):
    question = read_judged_queries(write("labels.csv", LABELS))
    with pytest.raises(InputError, match=reported) as error:
        read_answers(write("mine.run", run_of(run)), question)
    assert error.value.hint


def test_names_that_differ_only_in_their_folder_are_kept_apart_or_refused(write):
    table = write("labels.csv", "file,label\ncat/1.jpg,cat\ndog/1.jpg,dog\ncat/2.jpg,cat\n")
    run = write("mine.run", run_of({"cat/2.jpg": ["cat/1.jpg", "dog/1.jpg"]}))
    try:
        question = read_judged_queries(table)
        answers = read_answers(run, question)
    except ManifindError:
        return
    assert answers.ids.tolist() == [[0, 1]]


def test_a_query_ranked_under_two_spellings_is_refused(write):
    question = read_judged_queries(write("gnd.json", lists_of()))
    with pytest.raises(ManifindError):
        read_answers(write("mine.run", run_of(RUN | {"x/park_09.jpg": ["street_01"]})), question)


def test_a_ground_truth_that_is_no_ground_truth_is_refused(write, tmp_path):
    for path in (write("gnd.json", {"a": 1}), write("gnd.xyz", "text"), tmp_path / "missing.csv"):
        with pytest.raises(FileFormatError) as error:
            read_judged_queries(path)
        assert str(path) in error.value.problem
        assert error.value.hint
