"""Feature maps: from states, or pairs of state and action, to rows of numbers. They are scikit-learn transformers."""

from valuate.features._base import FeatureMap
from valuate.features.by_column import ByColumn, Identity
from valuate.features.choosing import choose
from valuate.features.fourier import Fourier
from valuate.features.one_hot import OneHot
from valuate.features.paper import acrobot, cart_pole, mountain_car
from valuate.features.polynomial import Polynomial
from valuate.features.random_fourier import RandomFourier
from valuate.features.rbf import RBFGrid
from valuate.features.specs import from_text
from valuate.features.state_action import StateActionBlocks
from valuate.features.tabular import Tabular
from valuate.features.tiles import TileCoding

#: The map that `to_dict` wrote.
load = FeatureMap.from_dict

__all__ = [
    "ByColumn",
    "FeatureMap",
    "Fourier",
    "Identity",
    "OneHot",
    "Polynomial",
    "RBFGrid",
    "RandomFourier",
    "StateActionBlocks",
    "Tabular",
    "TileCoding",
    "acrobot",
    "cart_pole",
    "choose",
    "from_text",
    "load",
    "mountain_car",
]
