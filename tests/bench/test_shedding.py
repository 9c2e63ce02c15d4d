"""The parts of shed-rates, memory-fixed and memory-variable: the simulated join, the claims, the surface of Eq. 14."""

import numpy as np
import pytest

from windrow.bench import memory_fixed, memory_variable, shed_rates
from windrow.bench.shedding import Setting, counted, near_model
from windrow.spec.allocation import output_rate

KEYS = ("results_per_s", "model", "rows_held", "recall")
TOGETHER = (shed_rates, memory_fixed, memory_variable)


def test_the_join_gives_the_pairs_of_its_definition():
    setting = Setting((4, 3), (5, 2), (3, 2), None, 1000)
    run = counted(setting, "slower", 20)
    sides = []
    for side in (0, 1):
        rate = setting.rates[side]
        times = (((np.arange(int(25 * rate)) + 0.5 * side) / rate) * 1_000_000).astype(np.int64)
        keys = np.random.default_rng(side).integers(setting.keys[side], size=len(times))
        sides.append(list(zip(times.tolist(), keys.tolist(), strict=True)))
    pairs = [
        max(a, b) / 1_000_000
        for a, k in sides[0]
        for b, m in sides[1]
        if k == m and (0 <= a - b < 2_000_000 or 0 <= b - a < 5_000_000)
    ]
    assert run.times.tolist() == sorted(at for at in pairs if at > 5)
    assert (run.shed, run.recall) == (0, 1)
    assert run.rate == pytest.approx(setting.modelled("slower"), rel=0.3)


def test_a_policy_sheds_down_to_its_rates():
    setting = shed_rates.SETTING
    run = counted(setting, "window-inverse", 2000)
    assert run.shed == pytest.approx(90 * 2009, rel=0.01)
    assert run.rate == pytest.approx(0.02 * 9 * 10, rel=0.1)
    assert run.recall == pytest.approx(run.rate / 320, abs=0.002)


@pytest.mark.parametrize("module", TOGETHER)
def test_claims_hold_of_the_equations_alone(module):
    figures = {f"model_{policy}": module.SETTING.modelled(policy) for policy in module.TITLES}
    figures |= {f"results_per_s_{policy}": module.SETTING.modelled(policy) for policy in module.TITLES}
    figures |= {f"rows_held_{policy}": 1000 for policy in module.TITLES}
    whole = output_rate(module.SETTING.selectivity, module.SETTING.rates, module.SETTING.windows)
    figures |= {f"recall_{p}": figures[f"model_{p}"] / whole for p in module.TITLES}
    figures["sigma_mu_m"] = 10
    assert all(module.claims(figures).values())
    assert module.SETTING.selectivity == {10: 0.02, 1000: 0.005, 100: 0.01}[module.SETTING.max_state or 10]


@pytest.mark.parametrize("module", TOGETHER)
def test_claims_fail_where_all_policies_give_the_same(module):
    figures = {f"{what}_{policy}": 1.0 for policy in module.TITLES for what in KEYS}
    found = module.claims({**figures, "sigma_mu_m": 10})
    assert not all(found.values())
    assert near_model(figures, list(module.TITLES), 0.01)


def test_the_surface_has_its_greatest_values_at_opposite_corners():
    found = memory_variable.surface(3)
    assert found[2, 0] == found[0, 2] == pytest.approx(10)
    assert found[0, 0] == found[2, 2] == 0
    assert found[1].tolist() == pytest.approx([5, 5, 5])
