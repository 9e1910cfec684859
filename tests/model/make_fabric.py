"""A rail-optimised leaf-spine fabric, put together by hand for tests of files and exports."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpufabric.model.fabric import Fabric
from gpufabric.model.tables import SCHEMAS, Table

Ints = npt.NDArray[np.int64]

GBPS = {"hdr": 200.0, "ndr": 400.0, "xdr": 800.0, "ethernet": 400.0}
MODELS = {
    "hdr": ("dgx-a100", "connectx-6", "qm8700"),
    "ndr": ("dgx-h100", "connectx-7", "qm9700"),
    "xdr": ("dgx-b300", "connectx-8", "q3400-ra"),
    "ethernet": ("dgx-h100", "connectx-7", "sn5600"),
}


@dataclass(frozen=True)
class Shape:
    """Sizes of the fabric; a leaf has `radix` ports, the upper half for spines."""

    hosts: int = 4
    rails: int = 2
    su_hosts: int = 2
    planes: int = 1
    spines: int = 2
    radix: int = 8
    managers: int = 1
    generation: str = "ndr"
    lanes: int = 2

    @property
    def sus(self) -> int:
        return -(-self.hosts // self.su_hosts)

    @property
    def leafs(self) -> int:
        """Leafs of one plane."""
        return self.sus * self.rails

    @property
    def uplinks(self) -> int:
        """Uplinks of a leaf; 0 without spines."""
        return self.radix // 2 if self.spines else 0

    @property
    def gbps(self) -> float:
        """Rate of every port."""
        return GBPS[self.generation] / self.planes


def make_fabric(shape: Shape | None = None) -> Fabric:
    shape = shape or Shape()
    assert shape.su_hosts + shape.managers <= shape.radix // 2
    if shape.spines:
        assert shape.uplinks % shape.spines == 0
        assert shape.leafs * shape.uplinks // shape.spines <= shape.radix
    nics, switches = _nics(shape), _switches(shape)
    links = _links(shape, len(nics), nics.port_first, switches.port_first)
    used = np.concatenate([links.port_a, links.port_b])
    return Fabric(
        name="by hand",
        protocol="roce" if shape.generation == "ethernet" else "infiniband",
        generation=shape.generation,
        family="rail" if shape.spines else "rail-only",
        models=MODELS[shape.generation],
        parts=("dac-2m",),
        racks=SCHEMAS["racks"].table(2, name=["R01", "R02"], units=48, power_w=1234.5),
        hosts=_hosts(shape),
        nics=nics,
        switches=switches,
        ports=_ports(shape, nics, switches, used),
        links=links,
        attributes={"planes": shape.planes, "oversubscription": {"leaf": 1.0}},
    )


def _hosts(shape: Shape) -> Table:
    compute = np.arange(shape.hosts)
    names = [f"host{number:05d}" for number in compute + 1]
    names += [f"manager{number}" for number in range(1, shape.managers + 1)]
    total = len(names)
    su = np.full(total, -1)
    su[: shape.hosts] = compute // shape.su_hosts
    return SCHEMAS["hosts"].table(
        total,
        name=names,
        role=np.arange(total) >= shape.hosts,
        n_gpus=np.where(np.arange(total) < shape.hosts, shape.rails, 0),
        su=su,
        rack=0,
        rack_unit=np.arange(total) % 40 + 1,
    )


def _nics(shape: Shape) -> Table:
    compute = shape.hosts * shape.rails
    total = compute + shape.managers
    row = np.arange(total)
    of_host = row < compute
    n_ports = np.where(of_host, shape.planes, 1)
    return SCHEMAS["nics"].table(
        total,
        host=np.where(of_host, row // shape.rails, shape.hosts + row - compute),
        index=np.where(of_host, row % shape.rails, 0),
        rail=np.where(of_host, row % shape.rails, -1),
        model=1,
        gbps=n_ports * shape.gbps,
        n_ports=n_ports,
        port_first=np.cumsum(n_ports) - n_ports,
    )


def _switches(shape: Shape) -> Table:
    names: list[str] = []
    rows: list[tuple[int, int, int, int]] = []  # tier, plane, rail, su
    for plane in range(shape.planes):
        for leaf in range(shape.leafs):
            su, rail = divmod(leaf, shape.rails)
            names.append(f"leaf-p{plane + 1}-su{su + 1}-r{rail + 1}")
            rows.append((1, plane, rail, su))
        for spine in range(shape.spines):
            names.append(f"spine-p{plane + 1}-{spine + 1:02d}")
            rows.append((2, plane, -1, -1))
    tier, plane_of, rail_of, su_of = np.array(rows).T
    first = shape.hosts * shape.rails * shape.planes + shape.managers
    return SCHEMAS["switches"].table(
        len(names),
        name=names,
        model=2,
        tier=tier,
        plane=plane_of,
        rail=rail_of,
        su=su_of,
        port_first=first + shape.radix * np.arange(len(names)),
        n_ports=shape.radix,
        rack=1,
        rack_unit=np.arange(len(names)) % 40 + 1,
    )


def _ports(shape: Shape, nics: Table, switches: Table, used: npt.NDArray[np.int32]) -> Table:
    sizes = np.concatenate([nics.n_ports, switches.n_ports]).astype(int)
    first = np.cumsum(sizes) - sizes
    row = np.arange(sizes.sum())
    device = np.concatenate([np.arange(len(nics)), np.arange(len(switches))])
    is_switch = np.concatenate([np.zeros(len(nics), int), np.ones(len(switches), int)])
    place = row - np.repeat(first, sizes)
    use = np.zeros(len(row), int)
    use[used] = 1
    lanes = np.where(np.repeat(is_switch, sizes) == 1, shape.lanes, 128)
    return SCHEMAS["ports"].table(
        len(row),
        is_switch=np.repeat(is_switch, sizes),
        device=np.repeat(device, sizes),
        port=place,
        cage=place // lanes,
        lane=place % lanes,
        gbps=shape.gbps,
        use=use,
    )


def _links(shape: Shape, n_nics: int, nic_port: Ints, switch_port: Ints) -> Table:
    per_plane = shape.leafs + shape.spines
    compute = np.arange(n_nics - shape.managers)
    host, rail = compute // shape.rails, compute % shape.rails
    leaf = host // shape.su_hosts * shape.rails + rail
    parts: list[tuple[Ints, Ints, int, int, Ints]] = []  # a, b, tier, plane, rail
    for plane in range(shape.planes):
        base = plane * per_plane
        port_b = switch_port[base + leaf] + host % shape.su_hosts
        parts.append((nic_port[compute] + plane, port_b, 1, plane, rail))
        if shape.spines:
            parts.append((*_uplinks(shape, base, switch_port), 2, plane, np.array(-1)))
    guests = np.arange(shape.managers)
    port_b = switch_port[0] + shape.su_hosts + guests
    parts.append((nic_port[n_nics - shape.managers + guests], port_b, 1, 0, np.array(-1)))
    sizes = [len(part[0]) for part in parts]
    total = sum(sizes)
    return SCHEMAS["links"].table(
        total,
        port_a=np.concatenate([part[0] for part in parts]),
        port_b=np.concatenate([part[1] for part in parts]),
        gbps=shape.gbps,
        tier=np.repeat([part[2] for part in parts], sizes),
        plane=np.repeat([part[3] for part in parts], sizes),
        rail=np.concatenate([np.broadcast_to(part[4], len(part[0])) for part in parts]),
        cable=np.arange(total),
        length_m=np.where(np.arange(total) % 3 == 0, np.nan, 2.3),
        part=np.where(np.arange(total) % 2 == 0, 0, -1),
    )


def _uplinks(shape: Shape, base: int, switch_port: Ints) -> tuple[Ints, Ints]:
    leaf, up = (part.ravel() for part in np.indices((shape.leafs, shape.uplinks)))
    spine, parallel = up % shape.spines, up // shape.spines
    each = shape.uplinks // shape.spines
    port_a = switch_port[base + leaf] + shape.radix // 2 + up
    port_b = switch_port[base + shape.leafs + spine] + leaf * each + parallel
    return port_a, port_b
