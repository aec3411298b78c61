"""Settings: every one has a constraint, defaults and the paper keep to them, and wrong values are named."""

import inspect
import math
from fractions import Fraction

import numpy as np
import pytest

from manifind.baselines import METHODS
from manifind.errors import InputError
from manifind.model import network
from manifind.model.estimator import GradNet
from manifind.settings import CONSTRAINTS, PAPER, check_settings, constraints_of, fit_settings
from project import load_script

DEFAULTS = {
    name: parameter.default
    for name, parameter in inspect.signature(GradNet).parameters.items()
    if name != "random_state"
}
NAN, INFINITY = float("nan"), float("inf")
NOT_NUMBERS = ["1", None, True, NAN, INFINITY, 1 + 0j, [1.0]]
NOT_WHOLE = [1.0, "3", True, NAN, (3,)]

# What each kind of setting may not be.
OR_NONE = ("n_neighbors", "n_query_neighbors", "truncation", "n_components", "input_components", "batch_size")
WRONG = {
    **{
        name: ["nonsense", "", None, 0, True, ["unit"]]
        for name in (
            "preprocess",
            "graph",
            "similarity",
            "inputs",
            "layer",
            "self_loops",
            "output",
            "local_loss",
            "global_coefficient",
            "epoch",
            "index",
            "precision",
            "positives",
            "device",
        )
    },
    **{name: [0, -1, None, *NOT_WHOLE] for name in ("n_anchors", "n_codes", "query_passes")},
    **{name: [0, -1, *NOT_WHOLE] for name in OR_NONE},
    **{name: [-1e-9, *NOT_NUMBERS] for name in ("local_weight", "global_weight", "walk_weight", "l2")},
    **{name: [0, -1.0, *NOT_NUMBERS] for name in ("temperature", "beta", "learning_rate")},
    "negative_slope": [0, -0.1, 1.01, *NOT_NUMBERS],
    "dropout": [-0.1, 1, 1.5, *NOT_NUMBERS],
    "layers": [(), [], None, 8, "88", (8, 0), (8, 4.0), (8, True), {8, 4}],
    "milestones": [None, 0.1, (0,), (1,), (-0.1,), (30,), "0.1"],
    **{name: [None, 0, 1, "yes", []] for name in ("guard", "verbose")},
    "epochs": [-1, None, *NOT_WHOLE],
    "max_steps": [-1, *NOT_WHOLE],
    "training_nodes": [2, -1, *NOT_WHOLE],
    "device_memory": [0, -1.0, *(value for value in NOT_NUMBERS if value is not None)],
    "kernel_width": [0, -1.0, *(value for value in NOT_NUMBERS if value is not None)],
    "walk_alpha": [0, 1, -0.1, 1.5, *NOT_NUMBERS],
    "descriptor_weight": [-1e-9, *(value for value in NOT_NUMBERS if value is not None)],
}
RIGHT = {
    **{name: [1, 7, np.int64(3)] for name in ("n_anchors", "n_codes", "query_passes")},
    **{name: [1, None, np.int32(3)] for name in OR_NONE},
    **{name: [0, 0.0, 1e9, np.float32(0.5)] for name in ("local_weight", "global_weight", "walk_weight", "l2")},
    **{name: [1e-9, 1, Fraction(1, 3)] for name in ("temperature", "beta", "learning_rate")},
    "negative_slope": [1e-3, 1, 1.0],
    "dropout": [0, 0.0, 0.999],
    "layers": [(1,), [8, 4], (np.int64(8),)],
    "milestones": [(), [], (0.5,), [0.1, 0.3]],
    "epochs": [0, 1],
    "max_steps": [0, 1, None, "auto"],
    "training_nodes": [3, 10**9, None],
    "device_memory": [0.5, 80, None],
    "kernel_width": [0.1, 2, None],
    "walk_alpha": [0.5, 0.999],
    "descriptor_weight": [0, 0.5, 80, None],
}


def test_every_setting_of_the_method_has_a_constraint_and_the_other_way_round():
    assert set(CONSTRAINTS) == set(DEFAULTS)


def test_the_paper_decides_every_setting_but_the_device_and_what_is_shown():
    assert set(PAPER) == set(CONSTRAINTS) - {"device", "device_memory", "verbose"}


def test_all_but_what_is_shown_decides_a_fit():
    assert set(fit_settings(GradNet().get_params())) == set(GradNet().get_params()) - {"verbose"}


def test_the_tests_name_a_wrong_value_for_every_setting():
    assert set(WRONG) == set(CONSTRAINTS)


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_the_default_holds(name):
    assert CONSTRAINTS[name].holds(DEFAULTS[name])


@pytest.mark.parametrize("name", PAPER)
def test_the_value_of_the_paper_holds(name):
    assert CONSTRAINTS[name].holds(PAPER[name])


def test_defaults_and_paper_pass_as_a_whole():
    check_settings(GradNet().get_params())
    check_settings(GradNet(**PAPER).get_params())
    assert GradNet(**PAPER).beta == math.exp(5)


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_a_wrong_value_is_refused_with_name_value_and_expectation(name, value):
    with pytest.raises(InputError) as refusal:
        check_settings({**DEFAULTS, name: value})
    assert refusal.value.problem == f"{name} = {value!r}; expected {CONSTRAINTS[name].words}"


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in RIGHT.items() for value in values])
def test_a_value_at_the_edge_of_what_is_allowed_is_taken(name, value):
    check_settings({**DEFAULTS, name: value})


@pytest.mark.parametrize("name", [name for name in CONSTRAINTS if CONSTRAINTS[name].words.startswith("one of")])
def test_every_choice_that_the_words_offer_is_taken(name):
    choices = CONSTRAINTS[name].words.removeprefix("one of ").replace("'", "").split(", ")
    assert len(choices) >= 2
    for choice in choices:
        check_settings({**DEFAULTS, name: choice})


def test_the_constructor_stores_what_it_is_given_and_fit_refuses_it():
    model = GradNet(n_neighbors=0)
    assert model.n_neighbors == 0
    with pytest.raises(InputError, match="n_neighbors = 0; expected a whole number of at least 1"):
        model.fit(np.eye(5))


def test_the_settings_let_in_exactly_the_layers_that_there_are():
    assert CONSTRAINTS["layer"].choices == tuple(network.LAYER_KINDS)


def test_the_table_of_settings_in_the_readings_is_up_to_date():
    script = load_script("methods_page")
    assert script.READINGS.read_text() == script.render_readings(), "run `make docs`"


def test_the_docstring_has_an_entry_for_every_setting_with_its_default():
    for name, default in inspect.signature(GradNet).parameters.items():
        assert f"\n{name} : " in inspect.getdoc(GradNet)
        assert f"default={default.default!r}\n" in GradNet.__doc__


def test_a_class_that_changes_a_default_keeps_the_constraint_and_one_without_the_setting_has_none():
    assert set(constraints_of(METHODS["k-reciprocal"])) == {
        "preprocess", "n_neighbors", "n_averaged", "distance_weight"
    }  # fmt: skip
    for name, method in METHODS.items():
        assert method().get_params().keys() - constraints_of(method).keys() <= {"random_state"}, name
