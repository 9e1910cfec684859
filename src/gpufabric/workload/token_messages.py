"""Tokens to experts and back, message by message, as DeepEP's kernels for large batches do it.

A token crosses the network once for each host that has experts for it, to the GPU of its own
number there, which hands it on over NVLink; on the way back that GPU adds up what its host's
experts made of the token. `pairwise.expert_phases` is the same merged, for drawn experts.

Source: DeepEP README, "normal kernels"; DeepSeek-V3 technical report, section 3.2.2.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.workload.schedule import MessageList, Messages

__all__ = ["token_messages"]


def token_messages(
    n_domains: int,
    each: int,
    tokens: Sequence[tuple[int, frozenset[int]]],
    token_bytes: float,
    *,
    combine: bool = False,
) -> Messages:
    """Return every message of dispatch, or of combine.

    Parameters
    ----------
    n_domains, each
        Hosts, and GPUs of each.
    tokens
        Of each token: the rank that has it, and the ranks of its experts. Token t is chunk t.
    token_bytes
        Size of each [byte].
    combine
        Whether results come back, added up on the way.

    Raises
    ------
    InputError
        If there is no such rank.
    """
    n = n_domains * each
    wrong = next((at for at, (s, to) in enumerate(tokens) if not {s, *to} <= set(range(n))), None)
    if wrong is not None:
        what = _("token {at} is for ranks that are not there.").format(at=wrong)
        raise InputError(Fault("tokens", what, _("ranks 0 to {last}").format(last=n - 1)))
    rows = MessageList(n, [token_bytes] * len(tokens))
    far = [
        (source, relay, token)
        for token, (source, targets) in enumerate(tokens)
        for relay in sorted({_relay(source, target, each) for target in targets} - {source})
    ]
    near = [
        (relay, target, token)
        for token, (source, targets) in enumerate(tokens)
        for target in sorted(targets)
        for relay in [_relay(source, target, each)]
        if relay != target
    ]
    if combine:
        rows.step((target, relay, token, True) for relay, target, token in near)
        rows.step((relay, source, token, True) for source, relay, token in far)
    else:
        rows.step((source, relay, token, False) for source, relay, token in far)
        rows.step((relay, target, token, False) for relay, target, token in near)
    return rows.messages()


def _relay(source: int, target: int, each: int) -> int:
    """The GPU of the target's host that takes a token from the network."""
    return target // each * each + source % each
