"""The cost model's items in words."""

from __future__ import annotations

from gpufabric.core.text import _

__all__ = ["item_label"]


def item_label(item: str) -> str:
    """Return what an item of a case's cost is called."""
    return _items().get(item, item)


def _items() -> dict[str, str]:
    return {
        "switches": _("switches"),
        "transceivers": _("transceivers"),
        "cables": _("cables"),
        "links": _("cables and transceivers"),
        "network": _("the network itself, as fees or as parts and their upkeep"),
        "managers": _("subnet managers and controllers"),
        "other_networks": _("storage and management networks"),
        "spares": _("spare parts"),
        "installation": _("installation"),
        "training": _("training or hiring of the team"),
        "financing": _("financing"),
        "residual": _("value at the end"),
        "energy": _("energy and cooling"),
        "space": _("rack space"),
        "support": _("vendor support"),
        "licences": _("licences and tools"),
        "staff": _("people"),
        "replacement": _("replacement parts"),
        "fees": _("subscription fees"),
        "setup": _("set-up fee"),
        "exit": _("fee for leaving"),
        "credits": _("service credits"),
        "communication": _("GPU-hours that wait for the network"),
        "jitter": _("GPU-hours lost to late messages"),
        "failures": _("GPU-hours lost to failures"),
        "misconfiguration": _("GPU-hours lost to wrong settings"),
        "deployment": _("GPU-hours lost until the network is there and tuned"),
    }
