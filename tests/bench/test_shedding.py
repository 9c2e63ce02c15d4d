"""The parts of shed-rates, memory-fixed and memory-variable: the simulated join, the claims, the surface of Eq. 14."""

import numpy as np
import pytest

from windrow.bench import memory_fixed, memory_variable, shed_rates
from windrow.bench.shedding import Setting, counted, near_model

TOGETHER = (shed_rates, memory_fixed, memory_variable)


def by_hand(sides, windows):
    """All pairs, each when the later of its tuples comes."""
    found = []
    for at, key in zip(*sides[0], strict=True):
        for other, its in zip(*sides[1], strict=True):
            if key == its and (0 < at - other <= windows[1] or 0 < other - at <= windows[0]):
                found.append(max(at, other))
    return sorted(found)


def test_the_join_gives_the_pairs_of_its_definition():
    setting = Setting((4, 3), (5, 2), (3, 2), None, 1000)
    run = counted(setting, "slower", 20)
    sides = []
    for side in (0, 1):
        rate = setting.rates[side]
        times = (np.arange(int(25 * rate)) + 0.5 * side) / rate
        sides.append((times, np.random.default_rng(side).integers(setting.keys[side], size=len(times))))
    assert run.times.tolist() == [at for at in by_hand(sides, (5, 2)) if at > 5]
    assert run.rate == pytest.approx(setting.modelled("slower"), rel=0.3)


def test_a_policy_sheds_down_to_its_rates():
    setting = shed_rates.SETTING
    run = counted(setting, "window-inverse", 2000)
    assert run.rows == pytest.approx(setting.allocated("window-inverse").rows, rel=0.05)
    assert run.rate == pytest.approx(0.02 * 9 * 10, rel=0.1)


@pytest.mark.parametrize("module", TOGETHER)
def test_claims_hold_of_the_equations_alone(module):
    figures = {f"model_{policy}": module.SETTING.modelled(policy) for policy in module.TITLES}
    figures |= {f"results_per_s_{policy}": module.SETTING.modelled(policy) for policy in module.TITLES}
    figures["sigma_mu_m"] = 10
    assert all(module.claims(figures).values())
    assert module.SETTING.selectivity == {10: 0.02, 1000: 0.005, 100: 0.01}[module.SETTING.max_state or 10]


@pytest.mark.parametrize("module", TOGETHER)
def test_claims_fail_where_all_policies_give_the_same(module):
    figures = {f"{what}_{policy}": 1.0 for policy in module.TITLES for what in ("results_per_s", "model")}
    found = module.claims({**figures, "sigma_mu_m": 10})
    assert not all(found.values())
    assert near_model(figures, list(module.TITLES), 0.01)


def test_the_surface_has_its_greatest_values_at_opposite_corners():
    found = memory_variable.surface(3)
    assert found[2, 0] == found[0, 2] == pytest.approx(10)
    assert found[0, 0] == found[2, 2] == 0
    assert found[1].tolist() == pytest.approx([5, 5, 5])
