"""Values as a scikit-learn estimator: `LinearValue`, its files, and folds of whole episodes. Loads scikit-learn."""

from valuate.estimator.folds import cross_score, episode_folds
from valuate.estimator.linear_value import LinearValue, load_model
from valuate.estimator.pricing import compare_policies

__all__ = ["LinearValue", "compare_policies", "cross_score", "episode_folds", "load_model"]
