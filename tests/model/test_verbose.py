"""`verbose` shows how far a fit is, and changes nothing else: not the features, not what is kept, not the paper."""

import numpy as np
import pytest
from sklearn.base import clone

import manifind
from manifind.errors import InputError
from manifind.model import estimator as fit_job
from manifind.model.estimator import GradNet, GradNetPaper
from manifind.model.refit import settings_of
from manifind.settings import PAPER

SMALL = {"n_neighbors": 4, "n_anchors": 8, "layers": (16, 8), "max_steps": 3, "random_state": 0}
X = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)


def test_a_fit_is_silent_unless_it_is_asked_to_show_where_it_is(capsys):
    silent = GradNet(**SMALL).fit(X)
    assert capsys.readouterr() == ("", "")
    shown = GradNet(**SMALL, verbose=True).fit(X)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "building the graph" in captured.err
    assert "training" in captured.err
    assert "3/3" in captured.err
    np.testing.assert_array_equal(shown.features_, silent.features_)
    assert {name: value for name, value in shown.info_.items() if "seconds" not in name} == {
        name: value for name, value in silent.info_.items() if "seconds" not in name
    }


def test_a_listener_hears_the_same_beside_the_bars():
    received = {}
    for verbose in (False, True):
        reports = received[verbose] = []
        GradNet(**SMALL, verbose=verbose).fit(X, listener=reports.append)
    assert received[True] == received[False] != []


def test_it_is_a_parameter_like_others():
    model = GradNet(verbose=True)
    assert model.get_params()["verbose"] is True
    assert clone(model).verbose is True
    assert "verbose=True" in repr(model)
    assert "verbose" not in repr(GradNet())
    assert GradNet().set_params(verbose=True).verbose is True
    assert GradNetPaper(verbose=True).verbose is True
    assert "verbose" not in PAPER
    with pytest.raises(InputError, match="verbose = 'yes'; expected True or False"):
        GradNet(**SMALL, verbose="yes").fit(X)


def test_it_is_no_part_of_what_is_kept(tmp_path, capsys):
    collections = [
        GradNet(**SMALL, verbose=verbose).fit(X).save(tmp_path / f"{verbose}.manifind") for verbose in (False, True)
    ]
    capsys.readouterr()
    assert collections[0].settings == collections[1].settings
    assert "verbose" not in collections[1].settings
    assert "verbose" not in settings_of(collections[1].version)
    manifind.refit(collections[1])
    assert capsys.readouterr() == ("", "")
    manifind.refit(collections[1], verbose=True)
    assert "training" in capsys.readouterr().err
    assert "verbose" not in manifind.load(tmp_path / "True.manifind").settings


def test_a_fit_that_was_interrupted_in_silence_goes_on_with_bars(tmp_path):
    silent, shown = (GradNet(**SMALL, verbose=verbose).get_params() for verbose in (False, True))
    fit_job.open_checkpoint(tmp_path, X, None, silent).save("training", {"losses": np.zeros(3)})
    assert fit_job.open_checkpoint(tmp_path, X, None, shown).load("training") is not None
