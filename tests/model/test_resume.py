"""A fit that is interrupted and run again: the same bits as in one go, and nothing done twice."""

from contextlib import suppress

import numpy as np
import pytest

from manifind import checkpoint
from manifind.errors import TrainingError
from manifind.index import exact as neighbours
from manifind.model import estimator as fit_job
from manifind.model import walks as walk_features
from manifind.model.estimator import GradNet
from manifind.model.trainer import Trainer
from reference.graphs import clusters

N, STEPS, ROWS = 90, 6, 32
SMALL = {"n_neighbors": 6, "layers": (16, 8), "max_steps": STEPS, "random_state": 7}
EDGES = {"positives": "edges", "walk_weight": 0.0, "batch_size": 8, "dropout": 0.3, "inputs": "both", "n_anchors": 8}
KINDS = {"default": {}, "edges": EDGES, "codes": {"index": "sq8"}, "truncated": {"truncation": 9}}


@pytest.fixture(autouse=True)
def saves_whenever_it_can(monkeypatch):
    monkeypatch.setattr(checkpoint, "EVERY", 0)
    monkeypatch.setattr(neighbours, "_ROWS_PER_REPORT", ROWS)


@pytest.fixture
def work(monkeypatch):
    """How often each kind of work is done from here on."""
    done = {"blocks": 0, "walks": 0, "steps": 0}

    def count(kind, place, name):
        original = getattr(place, name)

        def counting(*arguments):
            done[kind] += 1
            return original(*arguments)

        monkeypatch.setattr(place, name, counting)

    count("blocks", neighbours, "are_others")
    count("walks", walk_features, "_iterate")
    count("steps", Trainer, "_step")
    return done


def data(n=N):
    return clusters(n, 8, 5, seed=0)


def small(**settings):
    return GradNet(**{**SMALL, **settings})


def stop_at(stage, done):
    def listener(progress):
        if (progress.stage, progress.done) == (stage, done):
            raise KeyboardInterrupt

    return listener


def interrupted(model, folder, stage, done, **arguments):
    with pytest.raises(KeyboardInterrupt):
        model.fit(data(), listener=stop_at(stage, done), checkpoint=folder, **arguments)


def assert_same(model, expected):
    for name in ("features_", "loss_curve_"):
        assert getattr(model, name).tobytes() == getattr(expected, name).tobytes(), name
    assert model.info_["seed"] == expected.info_["seed"]
    for name, weight in expected._weights.items():
        assert model._weights[name].tobytes() == weight.tobytes(), name


def stop_at_news(reports):
    """A listener that stops the fit at the first report that is not among those heard, and adds it to them."""

    def listener(progress):
        report = (progress.stage, "any" if progress.stage == "walks" else progress.done)
        if report not in reports:
            reports.append(report)
            raise KeyboardInterrupt

    return listener


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_that_is_interrupted_at_every_report_is_the_same_bit_for_bit(kind, tmp_path):
    queries, reports, model = clusters(9, 8, 5, seed=1), [], None
    while model is None:
        with suppress(KeyboardInterrupt):
            model = small(**KINDS[kind]).fit(
                data(), queries, listener=stop_at_news(reports), checkpoint=tmp_path / "kept"
            )
    expected = small(**KINDS[kind]).fit(data(), queries)
    assert_same(model, expected)
    assert model.query_features_.tobytes() == expected.query_features_.tobytes()
    assert [done for stage, done in reports if stage == "training"] == list(range(1, STEPS + 1))
    assert {"graph", "features"} <= {stage for stage, _ in reports}


@pytest.mark.parametrize(
    ("stage", "done", "left"),
    [
        ("graph", 0, (3, 1, STEPS)),
        ("graph", ROWS, (2, 1, STEPS)),
        ("graph", 2 * ROWS, (1, 1, STEPS)),
        ("graph", N, (0, 1, STEPS)),
        ("walks", 1, (0, 1, STEPS)),
        ("training", 1, (0, 0, STEPS - 1)),
        ("training", 4, (0, 0, STEPS - 4)),
        ("training", STEPS, (0, 0, 0)),
        ("features", 0, (0, 0, 0)),
    ],
)
def test_what_was_done_before_the_interruption_is_not_done_again(stage, done, left, tmp_path, work):
    expected = small().fit(data())
    assert tuple(work.values()) == (3, 1, STEPS)
    interrupted(small(), tmp_path / "kept", stage, done)
    work.update(blocks=0, walks=0, steps=0)
    model = small().fit(data(), checkpoint=tmp_path / "kept")
    assert tuple(work.values()) == left
    assert_same(model, expected)


def test_a_fit_that_is_done_leaves_nothing_behind(tmp_path):
    small().fit(data(), checkpoint=tmp_path / "deep" / "kept")
    assert not list((tmp_path / "deep").iterdir())


def test_a_fit_that_fails_keeps_what_was_good(tmp_path, work, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(Trainer, "_step", lambda *_: (float("nan"),) * 3)
        with pytest.raises(TrainingError):
            small().fit(data(), checkpoint=tmp_path)
    work.update(blocks=0, walks=0, steps=0)
    assert_same(small().fit(data(), checkpoint=tmp_path), small().fit(data()))
    assert tuple(work.values()) == (3, 1, 2 * STEPS)  # all of them but the steps by the fit without a checkpoint


@pytest.mark.parametrize(
    "change", [{"random_state": 8}, {"max_steps": 5}, {"similarity": "gaussian"}, {"n_components": 4}]
)
def test_another_fit_takes_nothing_from_the_folder(change, tmp_path, work):
    interrupted(small(), tmp_path, "training", 4)
    work.update(blocks=0, walks=0, steps=0)
    model = small(**change).fit(data(), checkpoint=tmp_path)
    assert tuple(work.values()) == (3, 1, change.get("max_steps", STEPS))
    assert_same(model, small(**change).fit(data()))


def test_other_descriptors_or_queries_are_another_fit(tmp_path, work):
    X = data()
    other = X.copy()
    other[3, 3] = np.nextafter(other[3, 3], 9)
    for arguments in ((other,), (X[::-1],), (X, X[:2]), (X.reshape(2 * N, -1),)):
        interrupted(small(), tmp_path, "features", 0)
        work.update(blocks=0, walks=0, steps=0)
        small().fit(*arguments, checkpoint=tmp_path)
        assert work["steps"] == STEPS


def test_other_weights_to_start_from_are_another_fit(tmp_path):
    def opened(start):
        return fit_job.open_checkpoint(tmp_path, data(), None, small().get_params(), start)

    for start in (None, {"W": np.ones((2, 3), np.float32)}, {"W": np.zeros((2, 3), np.float32)}, {}):
        assert opened(start).load("training") is None
        opened(start).save("training", {"losses": np.zeros(3)})
        assert opened(start).load("training") is not None


def test_without_a_seed_the_one_that_was_drawn_is_kept(tmp_path, work, monkeypatch):
    interrupted(small(random_state=None), tmp_path, "training", 4)
    work.update(blocks=0, walks=0, steps=0)
    model = small(random_state=None).fit(data(), checkpoint=tmp_path)
    assert work["steps"] == STEPS - 4
    monkeypatch.setattr(fit_job, "draw_seed", lambda _: model.info_["seed"])
    assert_same(model, small(random_state=None).fit(data()))


def test_a_seed_that_was_drawn_is_not_kept_for_one_that_is_given(tmp_path):
    interrupted(small(random_state=None), tmp_path, "training", 4)
    assert_same(small().fit(data(), checkpoint=tmp_path), small().fit(data()))


def test_damage_costs_the_work_and_not_the_result(tmp_path, work):
    interrupted(small(), tmp_path, "training", 4)
    for path in tmp_path.glob("*.npz"):
        path.write_bytes(path.read_bytes()[:-1])
    work.update(blocks=0, walks=0, steps=0)
    model = small().fit(data(), checkpoint=tmp_path)
    assert tuple(work.values()) == (3, 1, STEPS)
    assert_same(model, small().fit(data()))


def test_a_place_that_cannot_be_written_does_not_stop_a_fit(tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert_same(small().fit(data(), checkpoint=tmp_path / "file"), small().fit(data()))
    assert (tmp_path / "file").read_text() == "in the way"
