"""Candidates side by side: what reports and commands ask the planner for."""

from __future__ import annotations

from gpufabric.planner.comparison import ComparisonRow, comparison
from gpufabric.planner.generation import plan_all
from gpufabric.planner.plan import CandidatePlan, LeftOut, Plan, plan_candidate
from gpufabric.planner.plan_file import plan_json, plan_schema, spec_hash

__all__ = [
    "CandidatePlan",
    "ComparisonRow",
    "LeftOut",
    "Plan",
    "comparison",
    "plan_all",
    "plan_candidate",
    "plan_json",
    "plan_schema",
    "spec_hash",
]
