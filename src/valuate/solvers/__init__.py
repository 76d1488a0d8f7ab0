"""Solvers: frozen values with one verb, ``solve``."""

from valuate.solvers.auto import Auto
from valuate.solvers.direct import LSTD
from valuate.solvers.gcr import GCR
from valuate.solvers.krylov import GMRES, LSMR, BiCGSTAB
from valuate.solvers.methods import GTD, GTD2, SAGA, SCSG, SVRG, TD, TDC, BatchingSVRG, Stochastic
from valuate.solvers.path import RidgePath, ridge_path

__all__ = [
    "Auto",
    "GCR",
    "GMRES",
    "GTD",
    "GTD2",
    "LSMR",
    "LSTD",
    "RidgePath",
    "SAGA",
    "SCSG",
    "SVRG",
    "TD",
    "TDC",
    "BatchingSVRG",
    "BiCGSTAB",
    "Stochastic",
    "ridge_path",
]
