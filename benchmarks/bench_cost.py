"""Draws of the cost model, and an advice, against the time asked for and a reckoning draw by draw.

10,000 draws of all cases of a plan may take 2 s. The peer of the second entry is the same model fed
one draw at a time, measured on few draws and multiplied.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from gpufabric.cli.loading import load_spec
from gpufabric.cost.outcome import evaluate
from gpufabric.planner.advice import advise
from gpufabric.planner.compare import plan_all
from gpufabric.planner.economics import Economics, economics

SPEC = Path(__file__).parent.parent / "examples/train-1024.yaml"
LIMIT_S = 2.0
ADVICE_LIMIT_S = 20.0
SINGLE_DRAWS = 32
REPEATS = 3


def entries() -> list[dict[str, Any]]:
    """Return entries for the draws, against the limit and draw by draw, and for an advice."""
    plan = plan_all(*load_spec(SPEC, None))
    money = economics(plan)
    all_s = min(_seconds(lambda: economics(plan)) for _repeat in range(REPEATS))
    evaluated_s = min(_seconds(lambda: _evaluated(money)) for _repeat in range(REPEATS))
    advice_s = min(_seconds(lambda: advise(money)) for _repeat in range(2))
    n_draws = len(next(iter(money.draws.values())))
    single_s = _seconds(lambda: _one_by_one(money)) / SINGLE_DRAWS * n_draws
    what = f"{n_draws} draws, {len(money.costs)} cases"
    return [
        _entry(f"cost, drawn and reckoned: {what}", all_s, "time asked for", LIMIT_S),
        _entry(f"cost, reckoned: {what}", evaluated_s, "draw by draw", single_s),
        _entry("advice, 1024 GPUs, all sizes", advice_s, "time asked for", ADVICE_LIMIT_S),
    ]


def _evaluated(money: Economics) -> None:
    for cost in money.costs:
        _ = evaluate(cost.case, money.draws).total


def _one_by_one(money: Economics) -> None:
    for at in range(SINGLE_DRAWS):
        draws = {key: column[at : at + 1] for key, column in money.draws.items()}
        for cost in money.costs:
            _ = evaluate(cost.case, draws).total


def _seconds(run: Any) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _entry(name: str, ours_s: float, peer: str, peer_s: float) -> dict[str, Any]:
    return {
        "name": name,
        "ours_s": round(ours_s, 4),
        "peer": peer,
        "peer_s": round(peer_s, 3),
        "ratio": round(peer_s / ours_s, 3),
        "peak_mib": None,
    }
