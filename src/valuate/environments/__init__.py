"""Environments to collect logs from, each with one call: ``make("acrobot").collect(100_000, seed=0)``."""

from __future__ import annotations

from typing import Any

from valuate.environments.acrobot import Acrobot
from valuate.environments.cart_pole import CartPole
from valuate.environments.chains import BairdStar, BoyanChain, RandomWalk
from valuate.environments.mountain_car import MountainCar
from valuate.environments.random_mdp import Garnet, RandomMDP
from valuate.environments.simulated import Simulated
from valuate.environments.tabular import Expectation, TabularMDP
from valuate.errors import InputError

__all__ = [
    "Acrobot",
    "BairdStar",
    "BoyanChain",
    "CartPole",
    "Expectation",
    "Garnet",
    "MountainCar",
    "RandomMDP",
    "RandomWalk",
    "Simulated",
    "TabularMDP",
    "make",
    "names",
]

_ENVIRONMENTS: dict[str, type[TabularMDP] | type[Simulated]] = {
    "acrobot": Acrobot,
    "baird-star": BairdStar,
    "boyan-chain": BoyanChain,
    "cart-pole": CartPole,
    "garnet": Garnet,
    "mountain-car": MountainCar,
    "random-mdp": RandomMDP,
    "random-walk": RandomWalk,
}


def names() -> tuple[str, ...]:
    """The names that `make` takes."""
    return tuple(_ENVIRONMENTS)


def make(name: str, **options: Any) -> TabularMDP | Simulated:
    """The environment of that name, with the options of its class."""
    if name not in _ENVIRONMENTS:
        raise InputError(f"There is no environment {name!r}. There are: {', '.join(_ENVIRONMENTS)}.")
    return _ENVIRONMENTS[name](**options)
