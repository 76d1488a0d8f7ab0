"""The log in docs/inspect.md: Cart Pole, with its time limit recorded as termination."""

import valuate as va
from valuate.environments import CartPole

log = CartPole(limit=30).collect(3000, seed=0, copies=1)
wrong = va.Transitions(
    log.states,
    log.rewards,
    log.next_states,
    terminated=log.terminated | log.truncated,
    actions=log.actions,
    episodes=log.episodes,
)
print(va.inspect(wrong))
