"""Turns published tables of training runs into this project's own form, one question a run.

Tables leave much unsaid. What is added here is from the same source where it says so elsewhere
(the shapes of the BLOOM trials, the sizes of the recipes' cut models), or else assumed by rule:
never from how long a run took.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpufabric.catalog.workload_constants import gpu_compute
from gpufabric.workload.transformer import Transformer, preset

__all__ = ["COLUMNS", "own_form"]

COLUMNS = (
    "run",
    "source",
    "date",
    "grade",
    "model",
    "layers",
    "hidden",
    "heads",
    "gpu",
    "gpus",
    "gpus_per_domain",
    "wire_gbytes_per_s",
    "software",
    "precision",
    "tensor",
    "pipeline",
    "chunks",
    "context",
    "expert",
    "expert_tensor",
    "zero",
    "micro_batch",
    "global_batch",
    "sequence_tokens",
    "recompute",
    "adapters",
    "step_s",
)

NAMES = (  # how a published name begins, and the preset
    ("llama 3.1 8b", "llama3-8b"),
    ("llama3 8b", "llama3-8b"),
    ("llama3.1-8b", "llama3-8b"),
    ("llama3-8b", "llama3-8b"),
    ("llama 3.1 70b", "llama3-70b"),
    ("llama3_70b", "llama3-70b"),
    ("llama3 70b", "llama3-70b"),
    ("llama3.1-70b", "llama3-70b"),
    ("llama3-70b", "llama3-70b"),
    ("maxtext llama3 70b", "llama3-70b"),
    ("llama3.1_405b", "llama3-405b"),
    ("llama 3.1 405b", "llama3-405b"),
    ("llama3.1 405b", "llama3-405b"),
    ("llama3.1-405b", "llama3-405b"),
    ("llama2-", ""),
    ("mpt-", ""),
    ("grok", "grok1-314b"),
    ("nemotron 340b", "nemotron4-340b"),
    ("nemotron4 340b", "nemotron4-340b"),
    ("nemotron 15b", "nemotron4-15b"),
    ("nemotron4 15b", "nemotron4-15b"),
    ("nemotron_3_nano", "nemotron3-nano"),
    ("nemotron_3_super", "nemotron3-super"),
    ("nemo megatron", "gpt3-175b"),
    ("gpt3-175b", "gpt3-175b"),
    ("gpt-175b", "gpt3-175b"),
    ("megatron-22b", "megatron-22b"),
    ("turing-530b", "megatron-530b"),
    ("megatron-1t", "megatron-1t"),
    ("internlm-7b", "internlm-7b"),
    ("deepseekv3", "deepseek-v3"),
    ("kimi_k2", "kimi-k2"),
    ("gpt oss 120b", "gpt-oss-120b"),
    ("qwen3_30b_a3b", "qwen3-30b-a3b"),
    ("qwen3_235b_a22b", "qwen3-235b-a22b"),
    ("mixtral 8x7b", "mixtral-8x7b"),
    ("mixtral 8x22b", "mixtral-8x22b"),
)
GPUS = {
    "a100_40gb": "A100-40GB",
    "a100_80gb": "A100",
    "A100-80GB": "A100",
    "Ampere (A100)": "A100",
    "": "A100",
    "h100_80gb": "H100",
    "H100-80GB": "H100",
}
SOFTWARE = (
    ("llm-foundry", "fsdp-eager"),
    ("torchtitan", "fsdp-compiled"),
    ("fms-fsdp", "fsdp-compiled"),
    ("Megatron-DeepSpeed", "megatron-deepspeed-2022"),
    ("Megatron-LM", "megatron-2022"),
    ("InternEvo", "megatron-2025"),
    ("MegaScale", "megatron-2025"),
    ("Megatron-Core", "megatron-2025"),
    ("NeMo", "megatron-2025"),
    ("Megatron-Bridge (26.06", "megatron-2026-06"),
    ("Megatron-Bridge (26.08", "megatron-2026-06"),
    ("Megatron-Bridge", "megatron-2026-02"),
)
PRECISIONS = {
    "": "bf16",
    "amp_bf16": "bf16",
    "amp_fp8": "fp8",
    "FP8 tensorwise": "fp8",
    "FP8 rowwise": "fp8",
}

# Trials before BLOOM, by size in 10**9 parameters: layers, hidden size, heads. Source: the
# headings of chronicles-prequel.md; before 02-21 the hidden size was 14400 and the layers a
# multiple of the stages.
BLOOM = {
    18: (6, 14336, 64),
    20: (8, 14400, 32),
    176: (70, 14336, 64),
    177: (96, 12288, 64),
    178: (82, 13312, 64),
    181: (72, 14336, 64),
    182: (78, 13824, 96),
    183: (72, 14400, 96),
    184: (100, 12288, 64),
    187: (80, 13824, 64),
    191: (77, 14400, 96),
    194: (78, 14400, 96),
    195: (106, 12288, 64),
    196: (84, 13824, 64),
    200: (80, 14400, 96),
    203: (94, 13312, 128),
    205: (81, 14400, 96),
    206: (82, 14336, 128),
}
BLOOM_EARLY = {195: (77, 14400, 96)}
_H78, _H84 = 13824, 13312
BLOOM_RUNS = {  # where the heading or the table's own column differs
    "bloom_50": (84, _H84, 64),
    "bloom_53": (78, _H78, 64),
    "bloom_57": (72, 14336, 32),
    "bloom_59": (72, 14336, 112),
    "bloom_64": (84, _H84, 128),
    "bloom_65": (96, 12288, 96),
    "bloom_66": (96, 12288, 128),
    "bloom_89": (78, _H78, 64),
    "bloom_92": (78, _H78, 128),
    "bloom_93": (78, _H78, 64),
    "bloom_97": (78, _H78, 128),
    "bloom_99": (72, 14336, 128),
    "bloom_102": (72, 14336, 128),
    "bloom_103": (84, _H84, 64),
    "bloom_104": (84, _H84, 64),
    "bloom_105": (84, _H84, 64),
    "bloom_112": (106, 12288, 96),
    "bloom_116": (106, 12288, 128),
    "bloom_117": (106, 12288, 96),
    "bloom_123": (82, _H84, 128),
    "bloom_128": (70, 14336, 112),
    "bloom_129": (70, 14336, 128),
}
# Configurations that a source has in another table than the times: by how a model's name begins.
RECIPES = (
    ("Llama3 70b Finetuning SFT", {"tp": 4, "pp": 4, "vp": 5, "seq_len": 4096}),
    ("Llama3 70b Finetuning LORA", {"tp": 2, "pp": 4, "vp": 20, "seq_len": 4096}),
    ("Maxtext Llama3 70b", {"tp": 1, "pp": 1, "mbs": 2, "seq_len": 8192, "sharding": "FSDP"}),
    ("Grok1 314b", {"tp": 4, "pp": 1, "ep": 8, "seq_len": 8192}),
    ("NeMo Megatron", {"tp": 4, "pp": 8, "vp": 6, "seq_len": 2048}),
    ("GPT-175B", {"tp": 8, "pp": 8, "vp": 6, "seq_len": 2048, "gbs": 6144}),
    ("InternLM-7B", {"seq_len": 2048, "gbs": 2048, "mbs": 2}),
    ("Llama2-", {"seq_len": 4096}),
)
BATCHES = {"bloom_44": 512}  # as the table's heading says; its column does not fit its TFLOP/s
STATED = {"bloom_02": (2048, 844.81), "bloom_05": (2048, 853.81)}  # in the text, not the table


def own_form(row: Mapping[str, str]) -> dict[str, str] | None:
    """Return a published row in our form; None where the question cannot be asked.

    That is: the model has no preset, or the program, the GPUs or the batch are unknown.
    """
    row = _completed(row)
    model = _model(row)
    software = next((s for begin, s in SOFTWARE if row["framework"].startswith(begin)), None)
    is_unsaid = "see file for flags" in row["notes"] or not _integer(row["gpus"])
    if model is None or software is None or is_unsaid:
        return None
    name, layers, hidden, heads = model
    gpu = _gpu(row["gpu"])
    gpus = int(row["gpus"])
    tensor, pipeline, context = (int(row[key]) for key in ("tp", "pp", "cp"))
    data = gpus // (tensor * pipeline * context)
    sequence = _integer(row["seq_len"]) or 8192
    rate = _float(row["tokens_per_s_per_gpu"])
    step_s, batch = _float(row["step_time_s"]), _integer(row["gbs"])
    if not batch and step_s and rate:
        batch = round(step_s * rate * gpus / sequence)
    micro = max(1, _integer(row["mbs"]))
    batch = batch or micro * data
    if row["framework"] == "torchtitan":
        batch, micro = micro * data, micro if pipeline == 1 else 1
    if batch % (data * micro):
        return None
    step_s = step_s or _step_s(row, preset(name), (batch * sequence, sequence, gpus), gpu)
    if not step_s:
        return None
    stated = _stated_flops(row, gpu)
    adapters = "LORA" in row["model"] or _is_adapter_run(row, name, sequence)
    if row["source"].startswith("NVIDIA/dgxc") and not adapters and stated and not layers:
        layers = _cut_layers(preset(name), stated, sequence)
    domain, wire = _domain(row, gpu, gpus)
    return {
        "run": row["run_id"],
        "source": row["source"],
        "date": row["date"],
        "grade": row["grade"],
        "model": name,
        "layers": str(layers or ""),
        "hidden": str(hidden or ""),
        "heads": str(heads or ""),
        "gpu": gpu,
        "gpus": str(gpus),
        "gpus_per_domain": str(domain),
        "wire_gbytes_per_s": f"{wire:g}" if gpus > domain else "",
        "software": software,
        "precision": PRECISIONS.get(row["precision"], row["precision"].lower()),
        "tensor": str(tensor),
        "pipeline": str(pipeline),
        "chunks": str(_integer(row["vp"]) or 1),
        "context": str(context),
        "expert": str(_integer(row["ep"]) or 1),
        # NeMo divides experts as all else unless told; Megatron-Bridge's recipes say 1.
        "expert_tensor": str(tensor if row["source"].startswith("NVIDIA/dgxc") else 1),
        "zero": str(_zero(row)),
        "micro_batch": str(micro),
        "global_batch": str(batch),
        "sequence_tokens": str(sequence),
        "recompute": _recompute(row),
        "adapters": "yes" if adapters else "",
        "step_s": f"{step_s:.5g}",
    }


def _step_s(
    row: Mapping[str, str], model: Transformer, counts: tuple[int, int, int], gpu: str
) -> float:
    """Time of a step from tokens a second, or from MFU; 0 where the source gives neither."""
    tokens, sequence, gpus = counts
    rate, share = _float(row["tokens_per_s_per_gpu"]), _float(row["mfu_pct"])
    if rate:
        return tokens / rate / gpus
    if not share:
        return 0.0
    flops = model.flops_per_token(sequence, is_causal=False) * tokens
    return flops / (gpu_compute(gpu).tflops["bf16"] * 1e12 * gpus * share / 100)


def _completed(row: Mapping[str, str]) -> dict[str, str]:
    """The row with what its source says elsewhere, and 1 for ways not named."""
    found = dict(row)
    for begin, recipe in RECIPES:
        if row["model"].startswith(begin):
            found |= {key: str(value) for key, value in recipe.items() if not row[key]}
    for key in ("tp", "pp", "cp"):
        found[key] = str(_integer(found[key]) or 1)
    if row["run_id"] in BATCHES:
        found["gbs"] = str(BATCHES[row["run_id"]])
    if row["run_id"] in STATED:
        batch, step = STATED[row["run_id"]]
        found |= {"gbs": str(batch), "step_time_s": str(step)}
    return found


def _integer(text: str) -> int:
    return int(float(text)) if text.replace(".", "", 1).isdigit() else 0


def _float(text: str) -> float:
    return float(text) if text else 0.0


def _gpu(text: str) -> str:
    name = text.removeprefix("DGX-")
    if name.startswith("H100 96GB"):
        return "H100-96GB"
    return GPUS.get(name, name)


def _model(row: Mapping[str, str]) -> tuple[str, int, int, int] | None:
    """Preset, and layers, hidden size and heads where they differ from it (0: as the preset)."""
    name = row["model"].lower()
    if "bloom prequel" in name:
        size = _integer(row["params_b"])
        is_early = "02-20" in row["notes"] or "02-17" in row["notes"]
        shape = BLOOM_RUNS.get(row["run_id"], BLOOM.get(size))
        if is_early and size in BLOOM_EARLY:
            shape = BLOOM_EARLY[size]
        return ("bloom-176b", *shape) if shape else None
    for begin, known in NAMES:
        if name.startswith(begin):
            return known or name, 0, 0, 0
    return None


def _stated_flops(row: Mapping[str, str], gpu: str) -> float:
    """FLOPs a token as the source counts them, from rates that it gives side by side."""
    rate, share = _float(row["tokens_per_s_per_gpu"]), _float(row["mfu_pct"])
    precision = PRECISIONS.get(row["precision"], row["precision"].lower())
    if not rate or not share:
        return 0.0
    return gpu_compute(gpu).tflops.get(precision, 0.0) * 1e12 * share / 100 / rate


def _cut_layers(model: Transformer, stated_flops: float, sequence: int) -> int:
    """Layers of a recipe's cut model for few GPUs, from its FLOPs a token; 0 if it is whole."""
    whole = model.flops_per_token(sequence, is_causal=False)
    head = 6.0 * model.dimensions.hidden * model.dimensions.vocabulary
    share = (stated_flops - head) / (whole - head)
    return max(1, round(model.n_layers * share)) if share < 0.7 else 0


def _is_adapter_run(row: Mapping[str, str], name: str, sequence: int) -> bool:
    """Whether a fine-tuning run's own FLOPs a token leave out gradients of weights."""
    rate, tflops = _float(row["tokens_per_s_per_gpu"]), _float(row["tflops_per_gpu"])
    if "finetune" not in row["notes"] or not rate or not tflops:
        return False
    return tflops * 1e12 / rate < 0.8 * preset(name).flops_per_token(sequence)


def _domain(row: Mapping[str, str], gpu: str, gpus: int) -> tuple[int, float]:
    """GPUs that NVLink joins, and GB/s of all their NICs; by the GPU's reference design."""
    is_rack = gpu in {"GB200", "GB300"}
    domain = min(gpus, 64 if is_rack else 8)  # racks of 72, used in powers of two
    network = row["network"]
    if "Omni-Path" in network:
        return domain, 4 * 12.5
    if "1600 Gbps" in network:
        return domain, 200.0
    if "800 Gbps" in network and "4x" not in network:
        return domain, 100.0
    if "400Gbps per node" in network:
        return domain, 50.0
    return domain, domain * gpu_compute(gpu).nic_gbps / 8


def _zero(row: Mapping[str, str]) -> int:
    sharding = row["sharding"]
    if sharding == "SHARD_GRAD_OP":
        return 2
    if sharding.startswith(("FULL", "FSDP", "HSDP")) and sharding != "FSDP=0":
        return 3
    return 0 if row["run_id"] == "bloom_47" else 1


def _recompute(row: Mapping[str, str]) -> str:
    stated = row["act_ckpt"].lower()
    if "bloom" in row["model"].lower() or stated in {"true", "full", "full recompute"}:
        return "full"
    return "selective" if "selective" in stated else "none"
