"""The parts of a spec: host, workload, candidates, growth, site and networks, field by field."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from gpufabric.model.short_forms import (
    BEST,
    RATIO_PATTERN,
    SHORT_CANDIDATE_PATTERN,
    long_candidate,
    long_network,
    long_oversubscription,
    long_ratio,
    long_switch,
)

__all__ = [
    "MAX_GPUS",
    "MAX_HOSTS",
    "Candidate",
    "GenericHost",
    "GivenCandidate",
    "GivenManagement",
    "GivenStorage",
    "Growth",
    "ManagementNetwork",
    "Oversubscription",
    "Parallelism",
    "Site",
    "SpecPart",
    "StorageNetwork",
    "SwitchChoice",
    "Text",
    "Workload",
]

MAX_GPUS = 1_048_576
"""Largest cluster that a spec may name: eight times 131,072."""

MAX_HOSTS = 1_048_576
MAX_SWITCHES = 1_048_576

Text = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")]
_Title = Annotated[
    str,
    Field(
        min_length=1,
        max_length=64,
        pattern=r"^[^\s./\\\x00-\x1f\x7f-\x9f]([^/\\\x00-\x1f\x7f-\x9f]*[^\s/\\\x00-\x1f\x7f-\x9f])?$",
    ),
]
_Degree = Annotated[int, Field(ge=1, le=MAX_GPUS)]
_GivenRatio = (
    Annotated[float, Field(ge=0.25, le=100)] | Annotated[str, Field(pattern=RATIO_PATTERN)]
)
_Ratio = Annotated[
    float,
    Field(ge=0.25, le=100),
    BeforeValidator(long_ratio, json_schema_input_type=_GivenRatio),
]


def _whole(value: object) -> object:
    """Refuse True and 2.0, which compare equal to numbers of a Literal."""
    if isinstance(value, bool | float):
        raise PydanticCustomError("literal_error", "not a whole number")
    return value


def _without_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)


_Planes = Annotated[Literal[1, 2, 4, 8], BeforeValidator(_whole)]
_Tiers = Annotated[Literal[1, 2, 3], BeforeValidator(_whole)]
_NicSpeed = Annotated[Literal[100, 200, 400, 800, 1600], BeforeValidator(_whole)]
_NicPorts = Annotated[Literal[1, 2], BeforeValidator(_whole)]


class SpecPart(BaseModel):
    """A mapping of the spec: unknown keys and converted types are refused, nothing changes."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class GenericHost(SpecPart):
    """A host that is in no catalogue, by the numbers that the fabric needs."""

    gpus: int = Field(ge=1, le=1024, description="GPUs in one host.", examples=[8])
    nics: int = Field(
        ge=1, le=1024, description="Compute NICs in one host, without storage NICs.", examples=[8]
    )
    nic_gbps: _NicSpeed = Field(
        description="Speed of one NIC, all its ports together [Gb/s].", examples=[400]
    )
    rails: int | None = Field(
        default=None,
        ge=1,
        le=1024,
        description="Rails of the host. Left out: nics / nics_per_rail, or one rail a NIC.",
    )
    nics_per_rail: int | None = Field(
        default=None,
        ge=1,
        le=1024,
        description="NICs of one host on the same rail. Left out: nics / rails, or 1.",
    )
    ports_per_nic: _NicPorts = Field(
        default=1, description="Ports of one NIC; two share its speed and allow dual-tor."
    )
    power_kw: float | None = Field(
        default=None,
        ge=0.1,
        le=1000,
        description="Largest power of one host [kW]. Left out: unknown.",
    )
    ru: int | None = Field(
        default=None, ge=1, le=60, description="Height of one host [rack units]. Left out: unknown."
    )
    price_usd: float | None = Field(
        default=None, ge=0, le=1e9, description="Price of one host [USD]. Left out: unknown."
    )
    gpu: Text | None = Field(
        default=None,
        description="Model of its GPUs, such as H100. Left out: unknown, and nothing is told of "
        "the workload.",
    )

    @property
    def n_rails(self) -> int:
        """Rails of the host, from whichever of the two keys is given."""
        if self.rails is not None:
            return self.rails
        return self.nics // (self.nics_per_rail or 1)


class Parallelism(SpecPart):
    """How the model is spread over GPUs; each degree left out is chosen by the workload model."""

    tp: _Degree | None = Field(
        default=None, description="Tensor-parallel degree. Left out: chosen."
    )
    pp: _Degree | None = Field(
        default=None, description="Pipeline-parallel degree. Left out: chosen."
    )
    dp: _Degree | None = Field(default=None, description="Data-parallel degree. Left out: chosen.")
    ep: _Degree | None = Field(
        default=None, description="Expert-parallel degree. Left out: chosen."
    )
    cp: _Degree | None = Field(
        default=None, description="Context-parallel degree. Left out: chosen."
    )


class Workload(SpecPart):
    """What the cluster runs."""

    kind: Literal["training", "inference"] = Field(
        default="training", description="Training or inference."
    )
    model: Text | None = Field(
        default=None,
        description="Name of the model, such as llama3-70b. Left out: a reference model by kind, "
        "marked as assumed.",
    )
    global_batch: int | None = Field(
        default=None,
        ge=1,
        le=16_777_216,
        description="Training: sequences of a step on all GPUs. Left out: about 2,048.",
    )
    sequence_tokens: int | None = Field(
        default=None,
        ge=1,
        le=16_777_216,
        description="Training: tokens of a sequence. Left out: 8,192.",
    )
    sequences: int | None = Field(
        default=None,
        ge=1,
        le=1_048_576,
        description="Inference: sequences that an instance decodes at once. "
        "Left out: as many as fit, at most 32 a GPU.",
    )
    prompt_tokens: int | None = Field(
        default=None,
        ge=1,
        le=16_777_216,
        description="Inference: tokens of a prompt. Left out: 2,048.",
    )
    output_tokens: int | None = Field(
        default=None,
        ge=1,
        le=16_777_216,
        description="Inference: tokens of an answer. Left out: 256.",
    )
    parallelism: Parallelism = Field(
        default=Parallelism(),
        description="How the model is spread over GPUs. Left out: chosen by the workload model.",
    )
    precision: Literal["bf16", "fp8", "fp4"] | None = Field(
        default=None, description="Number format. Left out: the workload model's default."
    )
    latency_sensitive: bool | None = Field(
        default=None,
        description="Whether hops count as much as bandwidth. "
        "Left out: true for inference, false for training.",
    )

    gpudirect: bool | None = Field(
        default=None,
        description="Whether NICs reach the GPUs' memory themselves (GPUDirect RDMA). With false "
        "all that leaves a host is slower, and what that costs is told. Left out: true.",
    )

    @property
    def is_latency_sensitive(self) -> bool:
        """Whether hops count as much as bandwidth."""
        if self.latency_sensitive is not None:
            return self.latency_sensitive
        return self.kind == "inference"


class SwitchChoice(SpecPart):
    """The switch of each tier, by name in the catalogue or "best"."""

    leaf: Text = Field(default=BEST, description='Tier 1. "best": chosen by the planner.')
    spine: Text = Field(default=BEST, description='Tier 2. "best": chosen by the planner.')
    core: Text = Field(default=BEST, description='Tier 3. "best": chosen by the planner.')


class Oversubscription(SpecPart):
    """Down capacity over up capacity, tier by tier; below 1 more goes up than down."""

    leaf: _Ratio = Field(default=1.0, description="At the leaf: to hosts over to spines.")
    spine: _Ratio = Field(default=1.0, description="At the spine: to leafs over to cores.")

    @property
    def total(self) -> float:
        """From a host's NIC to the highest tier, both tiers multiplied."""
        return self.leaf * self.spine


_GivenOversubscription = Annotated[
    Oversubscription,
    BeforeValidator(
        long_oversubscription,
        json_schema_input_type=_GivenRatio
        | Annotated[list[_GivenRatio], Field(min_length=1, max_length=2)]
        | Oversubscription,
    ),
]
_GivenSwitch = Annotated[
    SwitchChoice, BeforeValidator(long_switch, json_schema_input_type=Text | SwitchChoice)
]


class Candidate(SpecPart):
    """One network to design and compare; all but `fabric` is chosen where it is left out."""

    name: _Title = Field(
        default="",
        description="Name in reports and file names, unique in the spec. "
        "Left out: the fabric, then roce-2, roce-3 …",
        json_schema_extra=_without_default,
    )
    fabric: Literal["infiniband", "roce"] = Field(
        description="InfiniBand, or RoCE v2 on Ethernet.", examples=["infiniband", "roce"]
    )
    switch: _GivenSwitch = Field(
        default=SwitchChoice(),
        description="Switch of all tiers by its name in the catalogue, or a mapping by tier. "
        '"best": chosen by the planner.',
        examples=["best", "sn5600"],
    )
    generation: Literal["hdr", "ndr", "xdr"] | None = Field(
        default=None,
        description="InfiniBand generation. Left out: that of the host's NICs.",
    )
    topology: Literal[
        "auto",
        "single",
        "fat-tree",
        "rail",
        "rail-only",
        "dual-tor",
        "multi-plane",
        "dragonfly+",
        "dragonfly",
    ] = Field(default="auto", description='Topology family. "auto": chosen by the planner.')
    planes: _Planes | None = Field(
        default=None,
        description="Parallel networks over which each NIC is split. "
        "Left out: as the topology needs, else 1.",
    )
    oversubscription: _GivenOversubscription = Field(
        default=Oversubscription(),
        description="Down capacity over up capacity: a number or ratio for the leaf (2 or 2:1), "
        "a list from the leaf up ([1, 7]), or a mapping by tier. 1 is non-blocking; below 1, "
        "more capacity goes up than down.",
        examples=[1, "2:1", [1, 7], {"leaf": 1, "spine": 7}],
    )
    tiers: _Tiers | None = Field(
        default=None, description="Switch tiers. Left out: the fewest that fit."
    )
    rails: int | None = Field(
        default=None, ge=1, le=1024, description="Rails. Left out: as the host has."
    )
    su_hosts: int | None = Field(
        default=None,
        ge=1,
        le=65_536,
        description="Hosts of one scalable unit. Left out: what one group of leafs takes.",
    )
    pod_hosts: int | None = Field(
        default=None,
        ge=1,
        le=MAX_HOSTS,
        description="Hosts of one pod of a three-tier fabric. Left out: as the sizing rule says.",
    )
    leafs: int | None = Field(
        default=None,
        ge=1,
        le=MAX_SWITCHES,
        description="At least so many leafs, in each plane. Left out: as many as the hosts need.",
    )
    spines: int | None = Field(
        default=None,
        ge=1,
        le=MAX_SWITCHES,
        description="At least so many spines, in each plane. Left out: as many as the leafs need.",
    )
    leafs_per_host: int | None = Field(
        default=None,
        ge=1,
        le=1024,
        description="Leafs that one host is cabled to. Left out: as the topology needs.",
    )
    hosts_per_rack: int | None = Field(
        default=None,
        ge=1,
        le=1024,
        description="Hosts of one rack. Left out: as many as its power and units allow.",
    )
    manager_ports: int | None = Field(
        default=None,
        ge=0,
        le=1024,
        description="Ports kept free for subnet managers or controllers, in each plane. Left out: "
        "4 in an InfiniBand fabric with spines, 2 on a single switch, 0 for RoCE.",
    )
    uplink_gbps: float | None = Field(
        default=None,
        ge=1,
        le=3200,
        description="Speed of one link between switches [Gb/s]. "
        "Left out: the fastest that keeps the tiers few.",
    )
    fill_cages: bool = Field(
        default=False,
        description="Buy a transceiver for every cage of a switch, used or not.",
    )
    optional: bool = Field(
        default=False,
        description="Leave it out, and say why, where it cannot be built or another is better in "
        "all respects.",
    )


GivenCandidate = Annotated[
    Candidate,
    BeforeValidator(
        long_candidate,
        json_schema_input_type=Annotated[str, Field(pattern=SHORT_CANDIDATE_PATTERN)] | Candidate,
    ),
]


class Growth(SpecPart):
    """The size that the design must be able to grow to; gpus or hosts."""

    gpus: int | None = Field(
        default=None, ge=1, le=MAX_GPUS, description="GPUs later. Left out: hosts says it."
    )
    hosts: int | None = Field(
        default=None, ge=1, le=MAX_HOSTS, description="Hosts later. Left out: gpus says it."
    )


class Site(SpecPart):
    """The room, its power and its money."""

    rack_power_kw: float = Field(
        default=40.8,
        ge=0.5,
        le=2000,
        description="Power that one rack may draw [kW]. Default: four DGX H100 of 10.2 kW each "
        "(NVIDIA DGX SuperPOD data centre guide, read 2026-09).",
    )
    rack_units: int = Field(
        default=48, ge=4, le=100, description="Height of one rack [rack units]. Default: assumed."
    )
    racks_per_row: int = Field(
        default=10, ge=1, le=1000, description="Racks of one row. Default: assumed."
    )
    row_pitch_m: float = Field(
        default=2.4,
        ge=0.5,
        le=50,
        description="From the middle of one row to the next [m]. "
        "Default: assumed, a rack 1.2 m deep and an aisle of 1.2 m.",
    )
    rack_pitch_m: float = Field(
        default=0.6,
        ge=0.3,
        le=5,
        description="From the middle of one rack to the next [m]. "
        "Default: assumed, a rack 600 mm wide.",
    )
    tray_height_m: float = Field(
        default=2.7,
        ge=0,
        le=20,
        description="Height of the cable tray above the floor [m]. Default: assumed.",
    )
    cable_slack_pct: float = Field(
        default=5.0,
        ge=0,
        le=100,
        description="Slack of a cable as a share of its route [%]. Default: assumed.",
    )
    cable_slack_m: float = Field(
        default=1.0,
        ge=0,
        le=50,
        description="Slack of a cable on top of that, both ends together [m]. Default: assumed.",
    )
    region: Text | None = Field(
        default=None, description="Where the site is. Left out: nothing is made of it."
    )
    currency: Literal["USD", "CNY", "EUR"] = Field(
        default="USD", description="Currency of the report; prices are kept in USD."
    )
    currency_rate: float | None = Field(
        default=None,
        ge=0.001,
        le=100_000,
        description="Units of the currency for one US dollar. "
        "Left out: 1 for USD; for another currency unknown, and amounts stay in USD.",
    )
    currency_date: Text | None = Field(
        default=None,
        description="Date of the rate. Left out: unknown, and the report says so.",
        examples=["2026-11-30"],
    )
    pue: float | None = Field(
        default=None,
        ge=1,
        le=5,
        description="Power usage effectiveness of the site. "
        "Left out: the cost model's value, shown with its source.",
    )
    usd_per_kwh: float | None = Field(
        default=None,
        ge=0,
        le=10,
        description="Price of energy [USD/kWh]. "
        "Left out: the cost model's value, shown with its source.",
    )


class StorageNetwork(SpecPart):
    """The storage network."""

    wanted: bool = Field(default=True, description="Whether it is designed and bought too.")
    gbps_per_host: float | None = Field(
        default=None,
        ge=1,
        le=100_000,
        description="Storage bandwidth of one host [Gb/s]. Left out: that of its storage NICs.",
    )


class ManagementNetwork(SpecPart):
    """The management (out-of-band) network."""

    wanted: bool = Field(default=True, description="Whether it is designed and bought too.")


GivenStorage = Annotated[
    StorageNetwork, BeforeValidator(long_network, json_schema_input_type=bool | StorageNetwork)
]
GivenManagement = Annotated[
    ManagementNetwork,
    BeforeValidator(long_network, json_schema_input_type=bool | ManagementNetwork),
]
