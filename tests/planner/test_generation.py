"""Candidates that the planner chooses: what can be built, is apart, and is beaten in something."""

from __future__ import annotations

import pytest

from gpufabric.core.errors import InputError
from gpufabric.planner.compare import plan_all
from gpufabric.planner.pareto import pareto
from gpufabric.planner.plan import plan_all as plan_each
from tests.planner.worked import money
from tests.report.designs import catalog, requirement

AUTO = "{gpus: 256, host: dgx-h100, candidates: auto, cost: {draws: 256}, offers: false}"


def test_every_kind_is_kept_or_left_out_with_a_reason() -> None:
    asked = requirement(AUTO)
    made = plan_all(asked, catalog())
    kept = [one.name for one in made.candidates]
    left = {one.name: one.why for one in made.left_out}
    assert sorted([*kept, *left]) == sorted(one.name for one in asked.candidates)
    assert {"infiniband", "roce"} <= set(kept), "the plain network of each fabric stays"
    assert all(why.endswith(".") for why in left.values())
    assert left["infiniband-rail"] == "It is the same network as infiniband."
    assert [one.name for one in made.requirement.candidates] == kept


def test_what_is_left_out_was_dominated_before() -> None:
    whole = plan_each(requirement(AUTO), catalog())
    costs = [cost for cost in money(AUTO).costs if not cost.case.is_hired]
    assert len(costs) == len(plan_all(requirement(AUTO), catalog()).candidates)
    points = {point.name: point for point in pareto(costs, money(AUTO).draws)}
    plain = {"infiniband", "roce"}
    assert [
        name for name, point in points.items() if point.is_dominated and name not in plain
    ] == []
    assert len(whole.candidates) > len(costs)


def test_an_optional_candidate_that_cannot_be_built_is_told_and_left_out() -> None:
    no = "{fabric: infiniband, name: tiny, tiers: 1"
    made = plan_all(
        requirement(f"{{gpus: 4096, host: dgx-h100, candidates: [roce, {no}, optional: true}}]}}"),
        catalog(),
    )
    assert [one.name for one in made.candidates] == ["roce"]
    assert [one.name for one in made.left_out] == ["tiny"]
    with pytest.raises(InputError):
        plan_all(
            requirement(f"{{gpus: 4096, host: dgx-h100, candidates: [roce, {no}}}]}}"), catalog()
        )
    alone = requirement(f"{{gpus: 4096, host: dgx-h100, candidates: [{no}, optional: true}}]}}")
    with pytest.raises(InputError):
        plan_all(alone, catalog())
