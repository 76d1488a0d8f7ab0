"""Solvers: frozen values with one verb, ``solve``."""

from valuate.solvers.direct import LSTD
from valuate.solvers.methods import GTD, GTD2, SAGA, SCSG, SVRG, TD, TDC, BatchingSVRG, Stochastic

__all__ = ["GTD", "GTD2", "LSTD", "SAGA", "SCSG", "SVRG", "TD", "TDC", "BatchingSVRG", "Stochastic"]
