"""Attention of a parallel drafting pass, in memory that grows with the chains and not with the square of the text.

Tokens attend to the tokens before them, which needs no mask at all; only the mask positions need one. Registered with
transformers, so that speculators' own layers call it.
"""

from typing import Any, NamedTuple

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers.modeling_utils import AttentionInterface

from drafter.chains import Partition

NAME = "peagle_chains"


class ChainMask(NamedTuple):
    """``tokens``: how many tokens stand first; ``chains``: [c, tokens + c], what each mask position attends to."""

    tokens: int
    chains: torch.Tensor


def chain_mask(part: Partition) -> ChainMask:
    """A mask position attends to the tokens up to its anchor, and to its own chain up to itself."""
    anchor, depth = part.chains
    tokens = torch.arange(part.end, device=anchor.device)
    own_chain = (anchor[:, None] == anchor[None]) & (depth[:, None] >= depth[None])
    return ChainMask(part.end, torch.cat([tokens[None] <= anchor[:, None], own_chain], dim=1))


def chain_attention(
    module: torch.nn.Module,  # noqa: ARG001
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: ChainMask,
    scaling: float | None = None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """transformers' attention interface: ``query``, ``key``, ``value`` are [1, heads, rows, head size]."""
    groups = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
    n = attention_mask.tokens
    out = scaled_dot_product_attention(query[:, :, :n], key[:, :, :n], value[:, :, :n], is_causal=True, scale=scaling)
    if len(attention_mask.chains):
        chains = scaled_dot_product_attention(query[:, :, n:], key, value, attn_mask=attention_mask.chains, scale=scaling)
        out = torch.cat([out, chains], dim=2)
    return out.transpose(1, 2).contiguous(), None


AttentionInterface.register(NAME, chain_attention)
