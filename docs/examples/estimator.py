"""The output of docs/estimator.md."""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import valuate as va
from valuate.environments import CartPole, Garnet, RandomWalk
from valuate.features import Tabular


def one_number():
    log = CartPole().collect(20_000, seed=0)
    model = va.LinearValue(features=make_pipeline(StandardScaler(), PolynomialFeatures(2)), discount=0.95)
    model.fit(log)
    print(log)
    print(model.evaluates_)
    print(model.solution_.message.partition(" Chosen")[0])
    print(model.predict(log.states[:3]).round(2))
    print(model.policy_value())


def columns():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 3)), rng.normal(size=500)
    model, other = va.LinearValue(ridge=0.1).fit(X, y), Ridge(alpha=500 * 0.1).fit(X, y)
    print(bool(np.allclose(model.coef_, other.coef_, rtol=1e-10) and np.isclose(model.intercept_, other.intercept_)))


def another_policy():
    process = Garnet(20, 3, seed=1, discount=0.9)
    log = process.collect(50_000, seed=0)
    target = np.eye(3)[process.action_values().argmax(axis=1)] * 0.9 + 0.1 / 3
    model = va.LinearValue(features=Tabular(20), discount=0.9, policy=lambda states: target[states]).fit(log)
    print(model.evaluates_)
    print("largest error:", np.abs(model.predict(np.arange(20)) - process.values(target)).max().round(3))
    behaviour = va.LinearValue(features=Tabular(20), discount=0.9).fit(log)
    print(
        "of a model of the logging policy:",
        np.abs(behaviour.predict(np.arange(20)) - process.values(target)).max().round(3),
    )
    return process, log, target


def by_ratios(process, log, target):
    logged = va.Transitions(
        log.states, log.rewards, log.next_states, actions=log.actions, episodes=log.episodes,
        probabilities=np.full(len(log), 1 / 3),
    )  # fmt: skip
    model = va.LinearValue(features=Tabular(20), discount=0.9, policy=lambda states: target[states]).fit(logged)
    print(model.evaluates_)


def which_features():
    log = RandomWalk(9).collect(4_000, seed=1)
    train, test = va.episode_folds(log, 2, seed=3)[0]
    for name, features in (("indicators", Tabular(9)), ("a constant", lambda states: np.ones((len(states), 1)))):
        model = va.LinearValue(features=features, discount=1.0).fit(log[train])
        own = va.Problem.from_transitions(log[test], model.feature_rows, discount=1.0).mspbe(model.solution_.theta)
        print(f"{name}: score {model.score(log[test]):.2g}, minus the MSPBE in its own features {-own:.2g}")
    print(model.reference_)


def outer_pipeline():
    log = CartPole().collect(1_000, seed=0)
    pipeline = make_pipeline(StandardScaler(), va.LinearValue())
    try:
        pipeline.fit(log.states, log.rewards, linearvalue__next_states=log.next_states)
    except va.InputError as error:
        print(error)


def batches_and_files():
    log = CartPole().collect(9_000, seed=0)
    scaler = StandardScaler().fit(log.states[:1_000])
    model = va.LinearValue(features=scaler, discount=0.95, ridge=1e-3)
    for first in range(0, 9_000, 3_000):
        model.partial_fit(log[first : first + 3_000])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save(path)
        again = va.load_model(path)
    print(again.predict(log.states[:3]).round(3), model.predict(log.states[:3]).round(3))


if __name__ == "__main__":
    one_number()
    print()
    columns()
    print()
    known = another_policy()
    print()
    by_ratios(*known)
    print()
    which_features()
    print()
    outer_pipeline()
    print()
    batches_and_files()
