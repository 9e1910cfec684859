"""Variables of NCCL's environment as what they change."""

from __future__ import annotations

import pytest

from gpufabric.core.errors import InputError
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.impairment import asks_of
from gpufabric.workload.nccl_tuner import allowed
from gpufabric.workload.nccl_variables import nccl_settings

HOSTS = Cluster("H100", 8, 2, 400.0)


@pytest.mark.parametrize(
    ("name", "value", "impairments"),
    [
        ("NCCL_IB_HCA", "mlx5_0,mlx5_1", ("shared_nic=2",)),
        ("NCCL_IB_HCA", "=mlx5_0:1", ("shared_nic=1",)),
        ("NCCL_IB_HCA", ",".join(f"mlx5_{at}" for at in range(8)), ()),
        ("NCCL_NET_GDR_LEVEL", "LOC", ("gdr_off",)),
        ("NCCL_NET_GDR_LEVEL", "SYS", ()),
        ("NCCL_IB_DISABLE", "1", ("tcp=9000",)),
        ("NCCL_IB_DISABLE", "0", ()),
        ("NCCL_NET", "Socket", ("tcp=9000",)),
        ("NCCL_NET", "IB", ()),
        ("NCCL_P2P_DISABLE", "1", ("nvlink_down=18",)),
        ("NCCL_P2P_LEVEL", "LOC", ("nvlink_down=18",)),
    ],
)
def test_what_impairs(name: str, value: str, impairments: tuple[str, ...]) -> None:
    found = nccl_settings({name: value}, 8)
    assert found.impairments == impairments
    assert len(asks_of(",".join(impairments))) == len(impairments) if impairments else True
    assert found.unused == ()


def test_algorithms_and_protocols() -> None:
    found = nccl_settings({"NCCL_ALGO": "^Tree,NVLSTree", "NCCL_PROTO": "LL128"}, 8)
    assert found.algorithm is not None
    assert "Tree" not in found.algorithm.split(",")
    assert "Ring" in found.algorithm.split(",")
    assert found.protocol == "LL128"


def test_in_switch_reduction() -> None:
    names = {choice.algorithm for choice in allowed(HOSTS, "all_reduce")}
    off = nccl_settings({"NCCL_NVLS_ENABLE": "0"}, 8).applied_to(HOSTS)
    assert names - {choice.algorithm for choice in allowed(off, "all_reduce")} == {"NVLSTree"}
    on = nccl_settings({"NCCL_COLLNET_ENABLE": "1"}, 8).applied_to(HOSTS)
    assert {"CollNetDirect", "CollNetChain"} <= {c.algorithm for c in allowed(on, "all_reduce")}
    assert nccl_settings({"NCCL_NVLS_ENABLE": "2"}, 8).applied_to(HOSTS) == HOSTS


def test_what_is_known_but_not_modelled_is_told() -> None:
    assert nccl_settings({"NCCL_IB_TC": "106"}, 8).unused == ("NCCL_IB_TC",)
    for name in ("NCCL_MNNVL_ENABLE", "NCCL_IB_MERGE_NICS", "NCCL_DMABUF_ENABLE", "NCCL_P2P_LEVEL"):
        assert nccl_settings({name: "1"}, 8).unused == (name,)
    # A plugin, and NICs that are left out of those that NCCL finds: it is not known which.
    assert nccl_settings({"NCCL_NET": "AWS Libfabric"}, 8).unused == ("NCCL_NET",)
    assert nccl_settings({"NCCL_IB_HCA": "^mlx5_0"}, 8).unused == ("NCCL_IB_HCA",)
    assert not nccl_settings({"NCCL_PXN_DISABLE": "1"}, 8).uses_pxn


def test_all_faults_together() -> None:
    wrong = {"NCCL_ALG": "Ring", "NCCL_P2P_DISABLE": "yes", "NCCL_NET_GDR_LEVEL": "NEAR"}
    with pytest.raises(InputError) as caught:
        nccl_settings({**wrong, "NCCL_ALGO": "allreduce:tree"}, 8)
    told = str(caught.value)
    assert len(caught.value.faults) == 4
    assert 'Did you mean "NCCL_ALGO"?' in told
    assert '"yes" is no value of NCCL_P2P_DISABLE' in told
