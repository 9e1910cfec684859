"""Variables of NCCL's environment as what they change in a prediction.

Source: NVIDIA, NCCL user guide 2.30, "Environment variables".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.nccl_tuner import ALGORITHMS, PROTOCOLS

__all__ = ["NcclSettings", "nccl_settings"]

PREFIX = "NCCL_"
SWITCHES = (
    "NCCL_NVLS_ENABLE",
    "NCCL_COLLNET_ENABLE",
    "NCCL_IB_DISABLE",
    "NCCL_P2P_DISABLE",
    "NCCL_PXN_DISABLE",
)
"""Variables that are 0 or 1; NCCL_NVLS_ENABLE knows 2 as well."""
NAMES = ("NCCL_ALGO", "NCCL_PROTO", "NCCL_IB_HCA", "NCCL_NET", "NCCL_NET_GDR_LEVEL", *SWITCHES)
"""Variables that change a prediction."""
_OTHERS = """
    ALLOC_P2P_NET_LL_BUFFERS BUFFSIZE CHECKS_DISABLE CHECK_POINTERS CHUNK_SIZE
    COLLNET_NODE_THRESHOLD COMM_BLOCKING COMM_ID COMM_SHRINK_SHARE_RESOURCES
    COMM_SPLIT_SHARE_RESOURCES CONF_FILE CROSS_NIC CTA_POLICY CUMEM_ENABLE CUMEM_HOST_ENABLE DEBUG
    DEBUG_FILE DEBUG_SUBSYS DEBUG_TIMESTAMP_FORMAT DEBUG_TIMESTAMP_LEVELS DMABUF_ENABLE ENV_PLUGIN
    GRAPH_DUMP_FILE GRAPH_FILE GRAPH_MIXING_SUPPORT GRAPH_REGISTER HOSTID IB_ADAPTIVE_ROUTING
    IB_ADDR_FAMILY IB_ADDR_RANGE IB_AR_THRESHOLD IB_DATA_DIRECT IB_ECE_ENABLE IB_FIFO_TC
    IB_GID_INDEX IB_MERGE_NICS IB_MERGE_VFS IB_PCI_RELAXED_ORDERING IB_QPS_PER_CONNECTION
    IB_RETRY_CNT IB_RETURN_ASYNC_EVENTS IB_ROCE_VERSION_NUM IB_SL IB_SPLIT_DATA_ON_QPS IB_TC
    IB_TIMEOUT IGNORE_CPU_AFFINITY LAUNCH_MODE LAUNCH_ORDER_IMPLICIT LAUNCH_RACE_FATAL
    LEGACY_CUDA_REGISTER LL_THRESHOLD LOCAL_REGISTER MAX_CTAS MAX_NCHANNELS MAX_P2P_NCHANNELS
    MIN_CTAS MIN_NCHANNELS MIN_P2P_NCHANNELS MNNVL_CLIQUE_ID MNNVL_ENABLE MNNVL_UUID
    NCHANNELS_PER_NET_PEER NETDEVS_POLICY NET_FORCE_MERGE NET_GDR_C2C NET_GDR_READ NET_MERGE_LEVEL
    NET_PLUGIN NET_SHARED_BUFFERS NET_SHARED_COMMS NSOCKS_PERTHREAD NTHREADS NVB_DISABLE
    NVLS_CHUNKSIZE NVLS_NCHANNELS OOB_NET_ENABLE OOB_NET_IFNAME P2P_DIRECT_DISABLE P2P_LEVEL
    P2P_NET_CHUNKSIZE P2P_PXN_LEVEL PROFILER_PLUGIN PXN_C2C RAS_ADDR RAS_ENABLE RAS_TIMEOUT_FACTOR
    RUNTIME_CONNECT SET_STACK_SIZE SET_THREAD_NAME SHM_DISABLE SHM_USE_CUDA_MEMCPY
    SINGLE_PROC_MEM_REG_ENABLE SINGLE_RING_THRESHOLD SOCKET_FAMILY SOCKET_IFNAME SOCKET_NTHREADS
    SOCKET_POLL_TIMEOUT_MSEC SOCKET_RETRY_CNT SOCKET_RETRY_SLEEP_MSEC THREAD_THRESHOLDS
    TOPO_DUMP_FILE TOPO_DUMP_FILE_RANK TOPO_FILE TREE_THRESHOLD TUNER_PLUGIN UID_STAGGER_RATE
    UID_STAGGER_THRESHOLD WIN_ENABLE WORK_ARGS_BYTES WORK_FIFO_BYTES
"""
WITHOUT_EFFECT = tuple(f"{PREFIX}{name}" for name in _OTHERS.split())
"""Known variables whose effect is not modelled; each is told."""
NO_GDR = {"LOC", "0"}
"""Levels of NCCL_NET_GDR_LEVEL and NCCL_P2P_LEVEL that switch GPUDirect off."""
GDR_LEVELS = ("LOC", "PIX", "PXB", "PHB", "SYS", "0", "1", "2", "3", "4", "5")
NETWORKS = {"IB": False, "SOCKET": True}
"""Networks that NCCL has itself, and whether they are sockets. Others are plugins: AWS Libfabric,
FasTrak …"""
MOST_LINKS = 18
TCP_MTU = 9000


@dataclass(frozen=True)
class NcclSettings:
    """What variables change.

    Parameters
    ----------
    algorithm, protocol
        Names with commas, or None where NCCL chooses.
    has_nvls, has_sharp
        None where nothing is said.
    impairments
        As ``--impair`` takes them.
    uses_pxn
        Whether data change rails over NVLink.
    unused
        Variables whose effect is not modelled.
    """

    algorithm: str | None = None
    protocol: str | None = None
    has_nvls: bool | None = None
    has_sharp: bool | None = None
    impairments: tuple[str, ...] = ()
    uses_pxn: bool = True
    unused: tuple[str, ...] = ()

    def applied_to(self, cluster: Cluster) -> Cluster:
        """Return a cluster with what the variables say of it."""
        if self.has_nvls is not None:
            cluster = replace(cluster, has_nvls=self.has_nvls)
        if self.has_sharp is not None:
            cluster = replace(cluster, has_sharp=self.has_sharp)
        return cluster


def nccl_settings(variables: Mapping[str, str], n_nics: int, where: str = "--env") -> NcclSettings:
    """Return what variables of NCCL's environment change.

    Parameters
    ----------
    variables
        By name, such as ``NCCL_ALGO``.
    n_nics
        NICs of a host, for ``NCCL_IB_HCA``.
    where
        What faults are said to be in.

    Raises
    ------
    InputError
        If a name is unknown or a value wrong; all faults together.

    Examples
    --------
    >>> found = nccl_settings({"NCCL_ALGO": "Ring", "NCCL_IB_HCA": "mlx5_0,mlx5_1"}, 8)
    >>> found.algorithm, found.impairments
    ('Ring', ('shared_nic=2',))
    """
    faults = [fault for name, value in variables.items() if (fault := _fault(name, value, where))]
    if faults:
        raise InputError(faults)
    algorithm, protocol = variables.get("NCCL_ALGO"), variables.get("NCCL_PROTO")
    nvls, sharp = variables.get("NCCL_NVLS_ENABLE"), variables.get("NCCL_COLLNET_ENABLE")
    return NcclSettings(
        _listed(algorithm, ALGORITHMS),
        _listed(protocol, PROTOCOLS),
        None if nvls in {None, "2"} else nvls == "1",
        None if sharp is None else sharp == "1",
        tuple(_impairments(variables, n_nics)),
        variables.get("NCCL_PXN_DISABLE", "0") == "0",
        tuple(name for name in variables if _is_unused(name, variables)),
    )


def _has_no_peers(variables: Mapping[str, str]) -> bool:
    """Whether GPUs do not reach each other's memory at any distance."""
    return variables.get("NCCL_P2P_LEVEL", "").upper() in NO_GDR


def _network(variables: Mapping[str, str]) -> str:
    """The network that is asked for, as ``NETWORKS`` names it."""
    return variables.get("NCCL_NET", "").upper()


def _is_unused(name: str, variables: Mapping[str, str]) -> bool:
    """Whether a variable is known, but what it says is not modelled."""
    value = variables[name]
    if name == "NCCL_NET":
        return bool(value) and _network(variables) not in NETWORKS
    if name == "NCCL_IB_HCA":
        return value.startswith("^")
    if name == "NCCL_P2P_LEVEL":
        return not _has_no_peers(variables)
    return name in WITHOUT_EFFECT


def _impairments(variables: Mapping[str, str], n_nics: int) -> list[str]:
    found = []
    nics = variables.get("NCCL_IB_HCA", "")
    if nics and not nics.startswith("^"):
        named = len({part for part in nics.lstrip("=").split(",") if part})
        if 0 < named < n_nics:
            found.append(f"shared_nic={named}")
    if variables.get("NCCL_NET_GDR_LEVEL", "").upper() in NO_GDR:
        found.append("gdr_off")
    if variables.get("NCCL_IB_DISABLE") == "1" or NETWORKS.get(_network(variables), False):
        found.append(f"tcp={TCP_MTU}")
    if variables.get("NCCL_P2P_DISABLE") == "1" or _has_no_peers(variables):
        found.append(f"nvlink_down={MOST_LINKS}")
    return found


def _listed(text: str | None, names: tuple[str, ...]) -> str | None:
    """Names with commas; those after a ``^`` are left out of all."""
    if text is None or not text.startswith("^"):
        return text
    out = {part.strip().lower() for part in text[1:].split(",")}
    return ",".join(name for name in names if name.lower() not in out)


def _fault(name: str, value: str, where: str) -> Fault | None:
    if name in WITHOUT_EFFECT:
        return None
    if name not in NAMES:
        what = _('the variable "{name}" is unknown.').format(name=name[:64])
        known = [*NAMES, *WITHOUT_EFFECT]
        return Fault(where, what, ", ".join(NAMES), nearest(name[:64].upper(), known))
    expected = ""
    if name in SWITCHES:
        choices = ("0", "1", "2") if name == "NCCL_NVLS_ENABLE" else ("0", "1")
        expected = "" if value in choices else ", ".join(choices)
    if name == "NCCL_NET_GDR_LEVEL" and value.upper() not in GDR_LEVELS:
        expected = ", ".join(GDR_LEVELS)
    if name in {"NCCL_ALGO", "NCCL_PROTO"} and (":" in value or not value.strip("^, ")):
        expected = ", ".join(ALGORITHMS if name == "NCCL_ALGO" else PROTOCOLS)
    if not expected:
        return None
    what = _('"{text}" is no value of {name}.').format(text=value[:64], name=name)
    return Fault(where, what, expected)
