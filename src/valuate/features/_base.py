"""What all feature maps share: the ways of a scikit-learn transformer, without scikit-learn."""

from __future__ import annotations

import inspect
from typing import Any, Self

from valuate.errors import InputError

__all__ = ["FeatureMap"]


class FeatureMap:
    """A transformer whose parameters are the arguments of its ``__init__``, kept under their names as they are given.

    It works where scikit-learn's do: in a Pipeline, with ``clone``, with ``set_params(step__name=value)``. What its
    parameters settle needs no fitting: `transform` may be called at once.
    """

    @classmethod
    def _names(cls) -> list[str]:
        return [name for name in inspect.signature(cls).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; with ``deep``, those of feature maps among them too, as ``name__parameter``."""
        params = {name: getattr(self, name) for name in self._names()}
        if deep:
            for name, value in list(params.items()):
                if hasattr(value, "get_params") and not isinstance(value, type):
                    params |= {f"{name}__{inner}": part for inner, part in value.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, ``name__parameter`` for those of a feature map among them."""
        names = self._names()
        for key, value in params.items():
            name, _, inner = key.partition("__")
            if name not in names:
                raise InputError(f"{type(self).__name__} has no parameter {name!r}. It has: {', '.join(names)}.")
            if inner:
                getattr(self, name).set_params(**{inner: value})
            else:
                setattr(self, name, value)
        return self

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameters against the states ``X``; ``y`` counts for nothing."""
        raise NotImplementedError

    def transform(self, X: Any) -> Any:
        """The features of m states, (m, n_features)."""
        raise NotImplementedError

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """`fit`, then `transform`."""
        return self.fit(X, y).transform(X)

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.get_params(deep=False).items())
        return f"{type(self).__name__}({given})"

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            requires_fit=False,
        )
