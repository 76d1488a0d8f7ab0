"""Feature maps: from states, or pairs of state and action, to rows of numbers. They are scikit-learn transformers."""

from valuate.features.paper import acrobot, cart_pole, mountain_car
from valuate.features.rbf import RBFGrid
from valuate.features.state_action import StateActionBlocks
from valuate.features.tabular import Tabular

__all__ = ["RBFGrid", "StateActionBlocks", "Tabular", "acrobot", "cart_pole", "mountain_car"]
