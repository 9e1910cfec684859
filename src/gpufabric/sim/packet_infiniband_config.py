"""Settings of InfiniBand links: credits for each virtual lane."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Credits"]


@dataclass(frozen=True)
class Credits:
    """Link-level flow control: a packet leaves only when its room at the far end is promised.

    The receiver tells for each virtual lane up to which block the sender may send (FCCL), in blocks
    of 64 B, modulo 4096, and never more than 2048 ahead of what has come.

    Parameters
    ----------
    buffer_bytes
        Receive buffer of each port and virtual lane [byte]; 0: what keeps the port's speed over its
        cable, see ``credit_buffer_for``.
    update_blocks
        A flow control packet is sent when the limit has grown by so many blocks of 64 B [1]. The
        smallest buffer must hold as many besides a full packet, or the sender could wait for ever.

    Notes
    -----
    Source: InfiniBand Architecture Specification 1.2.1, volume 1, section 7.9. It asks for an
    update at least every 65,536 symbol times and leaves it open when it is sent before; that it
    comes after 64 blocks, and that it names the limit of the moment it leaves, is assumed. Credits
    lost with a broken packet come back at once here; on a real link with the next update.
    """

    buffer_bytes: int = 0
    update_blocks: int = 64
