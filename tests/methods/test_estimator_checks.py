"""GradNet is a scikit-learn estimator: its own checks pass, but for those listed with their reason."""

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from gradnet import GradNet

CONTRACT = "the contract of all methods names the second argument `queries`, not `y`"
TOO_FEW = "fits 10 or 15 items, fewer than the default n_neighbors + 1, which are refused"
# Few neighbours, because some checks fit only ten items; and the default number with what that rules out.
SMALL = {"n_anchors": 5, "layers": (8, 4), "max_steps": 2, "batch_size": 16, "random_state": 0}
SETTINGS = {"few neighbours": SMALL | {"n_neighbors": 3}, "default neighbours": SMALL}
CANNOT_APPLY = {
    "few neighbours": {"check_fit_score_takes_y": CONTRACT},
    "default neighbours": {
        "check_fit_score_takes_y": CONTRACT,
        "check_n_features_in_after_fitting": TOO_FEW,
        "check_estimators_nan_inf": TOO_FEW,
        "check_fit2d_1feature": TOO_FEW,
    },
}


def checks():
    for name, settings in SETTINGS.items():
        for _, check in estimator_checks_generator(GradNet(**settings)):
            yield pytest.param(name, check, id=f"{name}-{check.func.__name__}")


@pytest.mark.parametrize(("name", "check"), list(checks()))
def test_scikit_learn_check_passes_or_is_listed_with_its_reason(name, check):
    estimator = GradNet(**SETTINGS[name])
    if check.func.__name__ in CANNOT_APPLY[name]:
        with pytest.raises((AssertionError, ValueError)):  # a check that begins to pass must leave the list
            check(estimator)
    else:
        check(estimator)
