"""Names that the tests of the spec take for the catalogue's."""

from gpufabric.model.requirement import KnownNames

KNOWN = KnownNames(
    switches={
        "qm8700": ("infiniband", "hdr"),
        "qm9700": ("infiniband", "ndr"),
        "q3400-ra": ("infiniband", "xdr"),
        "sn5600": ("roce", "ethernet"),
        "sn5610": ("roce", "ethernet"),
    },
    hosts={"dgx-h100": 8, "dgx-b300": 8, "gb300-nvl72": 72, "gb300 nvl72": 72},
    models=frozenset({"llama3-8b", "llama3-70b"}),
    quantities=frozenset(
        {"energy.usd_per_kwh", "energy.pue", "gpu_hour.usd.h100", "staff.usd_per_year"}
    ),
)
