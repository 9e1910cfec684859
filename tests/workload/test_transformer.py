from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufabric.core.errors import InputError
from gpufabric.workload.transformer import preset, sized

PUBLISHED = {  # 10**9 parameters, all and those that a token passes, as the authors state them
    "llama3-8b": (8.03, 8.03),
    "llama3-70b": (70.6, 70.6),
    "llama3-405b": (405, 405),
    "gpt3-175b": (175, 175),
    "megatron-530b": (529.6, 529.6),
    "megatron-1t": (1008, 1008),
    "bloom-176b": (176.2, 176.2),
    "mixtral-8x7b": (46.7, 12.9),
    "mixtral-8x22b": (141, 39),
    "deepseek-v3": (671, 37),
    "kimi-k2": (1040, 32.6),
    "qwen3-30b-a3b": (30.5, 3.3),
    "qwen3-235b-a22b": (235, 22),
    "gpt-oss-120b": (116.8, 5.7),
    "llama2-13b": (13.0, 13.0),
    "nemotron4-15b": (15.6, 15.6),
    "nemotron4-340b": (340, 340),
    "nemotron3-nano": (31.6, 3.6),
    "nemotron3-super": (120.6, 12.7),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_parameters_are_those_published(name: str) -> None:
    model = preset(name)
    total, active = PUBLISHED[name]
    assert model.parameters / 1e9 == pytest.approx(total, rel=0.015)
    assert model.active_parameters / 1e9 == pytest.approx(active, rel=0.025)


def test_flops_by_hand() -> None:
    # GPT-3, per layer and token forwards: 24 h**2 of products and 2 h s of causal attention.
    model, h, s = preset("gpt3-175b"), 12288, 2048
    forwards = 96 * (24 * h**2 + 2 * h * s) + 2 * h * 51200
    assert model.flops_per_token(s) == pytest.approx(3 * forwards)
    assert model.flops_per_token(s, is_causal=False) == pytest.approx(
        3 * (forwards + 96 * 2 * h * s)
    )


def test_a_window_bounds_attention() -> None:
    model = preset("gpt-oss-120b")
    grows = [model.flops_per_token(s) for s in (4096, 8192)]
    only_full = 3 * 18 * 2 * 64 * 128 * 2048.0  # 18 blocks, 2048 more tokens in the mean
    assert grows[1] - grows[0] == pytest.approx(only_full)


def test_experts_are_counted_once_all_and_once_passed() -> None:
    model = preset("mixtral-8x7b")
    assert model.expert_parameters == 32 * 8 * 3 * 4096 * 14336
    assert model.parameters - model.active_parameters == 32 * 6 * 3 * 4096 * 14336


@pytest.mark.parametrize("name", ["llama3-405b", "deepseek-v3", "nemotron3-nano"])
def test_fewer_layers_keep_the_mix(name: str) -> None:
    model = preset(name)
    half = model.with_layers(model.n_layers // 2)
    assert half.n_layers == pytest.approx(model.n_layers / 2, abs=2)
    inner = [each.parameters - each.embedding_parameters for each in (model, half)]
    assert inner[1] / inner[0] == pytest.approx(0.5, rel=0.1)
    with pytest.raises(InputError, match="layers"):
        model.with_layers(0)


@given(st.floats(1e8, 2e12))
def test_a_model_by_its_size_has_about_that_size(parameters: float) -> None:
    model = sized(parameters)
    inner = model.parameters - model.embedding_parameters
    assert inner == pytest.approx(parameters, rel=0.3)


def test_an_unknown_model_names_the_nearest() -> None:
    with pytest.raises(InputError, match="llama3-70b"):
        preset("llama3-70")
