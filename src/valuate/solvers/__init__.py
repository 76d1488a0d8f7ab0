"""Solvers: frozen values with one verb, ``solve``."""

from valuate.solvers.direct import LSTD
from valuate.solvers.methods import GTD2, SAGA, SCSG, SVRG, BatchingSVRG, Stochastic

__all__ = ["GTD2", "LSTD", "SAGA", "SCSG", "SVRG", "BatchingSVRG", "Stochastic"]
