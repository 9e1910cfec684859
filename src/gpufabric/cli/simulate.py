"""``gpufabric simulate``: its commands, each imported only when it is run or asked for help."""

from __future__ import annotations

import typer

from gpufabric.cli.lazy import Entry, LazyGroup
from gpufabric.core.text import _

__all__ = ["SimulateGroup", "app"]


class SimulateGroup(LazyGroup):
    """The commands of ``gpufabric simulate``."""

    def entries(self) -> dict[str, Entry]:
        """Return the commands by name, in the order in which help lists them."""
        return {
            "traffic": Entry(
                "simulate_traffic",
                "traffic",
                _("Send traffic through a fabric: completion times, bandwidth, busiest links."),
            ),
            "compare": Entry(
                "simulate_traffic",
                "compare",
                _(
                    "Compare InfiniBand and RoCE, tuned, default and misconfigured, on the same "
                    "traffic."
                ),
            ),
            "collective": Entry(
                "simulate_collective",
                "collective",
                _(
                    "Predict a collective's time for every size, as nccl-tests prints it, "
                    "with intervals."
                ),
            ),
            "training": Entry(
                "simulate_training",
                "training",
                _(
                    "Predict a training step: time, MFU, exposed communication, memory, "
                    "jitter, GPU-hours lost."
                ),
            ),
            "inference": Entry(
                "simulate_inference",
                "inference",
                _(
                    "Predict serving: time to first token, per token, tokens a second, "
                    "network share, tail."
                ),
            ),
            "trace": Entry(
                "simulate_trace",
                "trace",
                _("Play a job's traces on a fabric: step time, and what of communication shows."),
            ),
            "chakra": Entry(
                "simulate_chakra",
                "chakra",
                _(
                    "Write a training step or a collective as Chakra traces, one file a "
                    "GPU, for ASTRA-sim."
                ),
            ),
            "profile": Entry(
                "simulate_traffic",
                "show_profile",
                _("Print a profile: every parameter with its meaning and source."),
            ),
        }

    def words(self) -> str:
        """Return the help of the group."""
        return _("What a fabric delivers.")


app = typer.Typer(cls=SimulateGroup, no_args_is_help=True)


@app.callback()
def simulate() -> None:
    """What a fabric delivers."""
