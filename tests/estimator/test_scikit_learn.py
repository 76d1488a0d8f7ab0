"""`LinearValue` as a scikit-learn estimator."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from valuate.estimator import LinearValue


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([LinearValue(), LinearValue(ridge=0.1), LinearValue(solver="gmres", fit_intercept=False)])
def test_every_check_of_scikit_learn_passes(estimator, check):
    check(estimator)
