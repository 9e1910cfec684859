"""What a language model is made of: blocks with their matrix products, parameters and FLOPs.

A *product* multiplies each token's vector of `rows` numbers by a matrix of `rows` by `columns`:
2 rows x columns FLOPs a token forwards, twice that backwards. The *core* of an attention block is
what queries do with keys and values; it has no parameters.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from gpufabric.catalog.workload_constants import TransformerDimensions, transformer_dimensions
from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _

__all__ = ["Block", "Product", "Transformer", "preset", "sized"]

Kind = Literal["attention", "windowed", "mlp", "moe", "mamba", "head"]
MAMBA_CHUNK = 128  # tokens that Mamba-2 takes at once; Dao and Gu, arXiv:2405.21060, section 6


class Product(NamedTuple):
    """One matrix product that each token passes.

    Parameters
    ----------
    rows, columns
        Of the matrix.
    is_expert
        Whether the matrix is one of many, of which a token passes `copies`.
    copies
        How many such products a token passes.
    is_split
        Whether tensor parallelism divides it.
    """

    rows: int
    columns: int
    is_expert: bool = False
    copies: int = 1
    is_split: bool = True


class Block(NamedTuple):
    """One block of a model.

    Parameters
    ----------
    kind
        Attention, attention with a window, feed-forward, experts, Mamba-2, or the output head.
    number
        How many of these the model has.
    products
        Its matrix products.
    width
        Numbers a token that pass between kernels, read and written once each.
    routed_width
        Of these, what experts get and give: sorting and gathering tokens by expert.
    """

    kind: Kind
    number: int
    products: tuple[Product, ...]
    width: int
    routed_width: int = 0

    @property
    def passed_parameters(self) -> int:
        """Parameters of one such block that each token passes."""
        return sum(each.rows * each.columns * each.copies for each in self.products)

    def parameters(self, experts: int) -> int:
        """Parameters of one such block."""
        return sum(
            each.rows * each.columns * (experts if each.is_expert else each.copies)
            for each in self.products
        )


@dataclass(frozen=True)
class Transformer:
    """A language model by its dimensions.

    Parameters
    ----------
    name
        For messages.
    dimensions
        As in the catalogue.

    Examples
    --------
    >>> round(preset("llama3-70b").parameters / 1e9, 1)
    70.6
    >>> round(preset("deepseek-v3").active_parameters / 1e9, 1)
    37.6
    """

    name: str
    dimensions: TransformerDimensions

    @functools.cached_property
    def blocks(self) -> tuple[Block, ...]:
        """All kinds of blocks that the model has, the output head last."""
        d = self.dimensions
        found = [
            _attention(d, "attention", d.attention_blocks - d.windowed_blocks),
            _attention(d, "windowed", d.windowed_blocks),
            _mlp(d),
            _moe(d),
            _mamba(d),
            Block("head", 1, (Product(d.hidden, d.vocabulary),), 2 * d.vocabulary),
        ]
        return tuple(block for block in found if block.number)

    @property
    def n_layers(self) -> int:
        """Layers that a pipeline divides: attention with feed-forward, or single blocks."""
        d = self.dimensions
        if d.mamba_blocks:
            return d.attention_blocks + d.mamba_blocks + d.mlp_blocks + d.moe_blocks
        return d.attention_blocks

    @property
    def embedding_parameters(self) -> int:
        """Parameters of the matrix of input tokens, and of output tokens if another."""
        d = self.dimensions
        return d.hidden * d.vocabulary * (1 if d.tied else 2)

    @property
    def expert_parameters(self) -> int:
        """Parameters of all experts, which expert parallelism divides."""
        experts = self.dimensions.experts
        return sum(
            block.number * experts * product.rows * product.columns
            for block in self.blocks
            for product in block.products
            if product.is_expert
        )

    @property
    def parameters(self) -> int:
        """All parameters; norms and biases, under 0.1 %, left out."""
        experts = self.dimensions.experts
        inner = sum(b.number * b.parameters(experts) for b in self.blocks if b.kind != "head")
        return inner + self.embedding_parameters

    @property
    def active_parameters(self) -> int:
        """Parameters that each token passes, both matrices of tokens counted."""
        inner = sum(b.number * b.passed_parameters for b in self.blocks if b.kind != "head")
        return inner + self.embedding_parameters

    def context(self, kind: str, tokens: int) -> float:
        """Mean number of earlier tokens that a token of a sequence looks at, itself included."""
        if kind == "windowed":
            return min(float(self.dimensions.window), tokens / 2)
        return tokens / 2 if kind == "attention" else 0.0

    def core_flops(self, kind: str, context: float) -> float:
        """FLOPs a token forwards in the core of one block that looks at `context` tokens.

        Notes
        -----
        Attention: each head multiplies the query with `context` keys and adds as many values.
        Mamba-2: chunks of 128 tokens by attention-like products, and the state by two more.
        """
        d = self.dimensions
        if kind in {"attention", "windowed"}:
            return 2.0 * d.heads * (d.head_size + (d.value_size or d.head_size)) * context
        if kind == "mamba":
            inner = d.mamba_heads * d.mamba_head_size
            state = d.mamba_groups * d.mamba_state
            return MAMBA_CHUNK * (state + inner) + 4.0 * inner * d.mamba_state
        return 0.0

    def flops_per_token(self, sequence_tokens: int, *, is_causal: bool = True) -> float:
        """FLOPs a token of one training step: forwards, and twice that backwards.

        Parameters
        ----------
        sequence_tokens
            Length of a sequence.
        is_causal
            Whether attention to later tokens is left out, as kernels do; many published MFU
            figures count it.
        """
        total = 0.0
        for block in self.blocks:
            context = self.context(block.kind, sequence_tokens)
            if not is_causal and block.kind == "attention":
                context *= 2
            heads = self.dimensions.predicted_tokens if block.kind == "head" else 1
            each = 2.0 * block.passed_parameters * heads + self.core_flops(block.kind, context)
            total += block.number * each
        return 3.0 * total

    def with_layers(self, n_layers: int) -> Transformer:
        """Return the same model with fewer or more layers; a hybrid's mix is kept.

        Raises
        ------
        InputError
            If there would be none.
        """
        if n_layers < 1:
            what = _("the value is {value}.").format(value=n_layers)
            raise InputError(Fault("layers", what, "1 …"))
        d, share = self.dimensions, n_layers / self.n_layers
        counts = {
            name: round(getattr(d, name) * share)
            for name in ("attention_blocks", "windowed_blocks", "mamba_blocks", "moe_blocks")
        }
        if not d.mamba_blocks:
            counts["moe_blocks"] = min(counts["moe_blocks"], n_layers)
        counts["mlp_blocks"] = (
            round(d.mlp_blocks * share) if d.mamba_blocks else n_layers - counts["moe_blocks"]
        )
        if counts["mlp_blocks"] and not d.mlp_width:
            counts["mlp_blocks"] = 0
        return replace(self, dimensions=d.model_copy(update=counts))


def preset(name: str) -> Transformer:
    """Return a model of the catalogue by its name.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    return Transformer(name, transformer_dimensions(name))


def sized(parameters: float, vocabulary: int = 51200) -> Transformer:
    """Return a dense model in the form of GPT-3 with about so many parameters.

    Notes
    -----
    Layers grow with the cube root of the size from GPT-3's 96 at 175e9 (Brown et al., 2020,
    table 2.1: 40 at 13e9, 96 at 175e9); hidden size a multiple of 128, heads of 128.
    """
    layers = max(4, round(96 * (parameters / 175e9) ** (1 / 3) / 4) * 4)
    hidden = max(128, round((parameters / (12 * layers)) ** 0.5 / 128) * 128)
    dimensions = TransformerDimensions(
        hidden=hidden,
        heads=hidden // 128,
        kv_heads=hidden // 128,
        head_size=128,
        attention_blocks=layers,
        mlp_blocks=layers,
        mlp_width=4 * hidden,
        gated=False,
        vocabulary=vocabulary,
        tied=True,
        source="arXiv:2005.14165, table 2.1, scaled",
    )
    return Transformer(f"gpt-{parameters / 1e9:.0f}b", dimensions)


def _attention(d: TransformerDimensions, kind: Kind, number: int) -> Block:
    value = d.value_size or d.head_size
    output = Product(d.heads * value, d.hidden)
    if not d.kv_rank:
        columns = (d.heads + d.kv_heads) * d.head_size + d.kv_heads * value
        products: tuple[Product, ...] = (Product(d.hidden, columns), output)
        return Block(kind, number, products, 2 * d.hidden + columns + d.heads * value)
    keys_and_values = d.heads * (d.head_size - d.rope_size + value)
    compressed = (
        Product(d.hidden, d.query_rank, is_split=False),
        Product(d.query_rank, d.heads * d.head_size),
        Product(d.hidden, d.kv_rank + d.rope_size, is_split=False),
        Product(d.kv_rank, keys_and_values),
        output,
    )
    width = 2 * d.hidden + 2 * d.heads * d.head_size + d.heads * value
    return Block(kind, number, compressed, width)


def _mlp(d: TransformerDimensions) -> Block:
    up = (2 if d.gated else 1) * d.mlp_width
    products = (Product(d.hidden, up), Product(d.mlp_width, d.hidden))
    return Block("mlp", d.mlp_blocks, products, 2 * d.hidden + up + d.mlp_width)


def _moe(d: TransformerDimensions) -> Block:
    k, inner = d.experts_per_token, d.expert_input or d.hidden
    fold = 2 if d.gated else 1
    products = [
        Product(d.hidden, d.experts, is_split=False),
        Product(inner, fold * d.expert_width, is_expert=True, copies=k),
        Product(d.expert_width, inner, is_expert=True, copies=k),
    ]
    if d.expert_input:
        products += [
            Product(d.hidden, inner, is_split=False),
            Product(inner, d.hidden, is_split=False),
        ]
    if d.shared_width:
        products += [
            Product(d.hidden, fold * d.shared_width),
            Product(d.shared_width, d.hidden),
        ]
    width = 2 * d.hidden + (fold + 1) * d.shared_width
    routed = k * (2 * inner + (fold + 1) * d.expert_width)
    return Block("moe", d.moe_blocks, tuple(products), width, routed)


def _mamba(d: TransformerDimensions) -> Block:
    inner = d.mamba_heads * d.mamba_head_size
    columns = 2 * inner + 2 * d.mamba_groups * d.mamba_state + d.mamba_heads
    products = (Product(d.hidden, columns), Product(inner, d.hidden))
    return Block("mamba", d.mamba_blocks, products, 2 * d.hidden + 2 * columns + inner)
