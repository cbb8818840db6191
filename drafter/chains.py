"""Which draft positions of a sequence are trained on, and how a long sequence is cut so that memory stays bounded.

A *chain* is what one drafting pass would propose at one place of the text: it starts at its anchor, the last token the
target has seen (depth 0), and goes on with one mask token for each further depth. COD (conditional drop-token) sampling
keeps fewer chains the deeper it goes. P-EAGLE, arXiv 2602.01469.
"""

from typing import NamedTuple

import torch
from speculators.models.peagle.data import generate_cod_sample_indices


class Chains(NamedTuple):
    """Mask positions of one sequence, depth 1 and deeper; both tensors are [m]."""

    anchor: torch.Tensor
    depth: torch.Tensor


class Partition(NamedTuple):
    """One piece of a sequence: the tokens ``first`` to ``end`` and the chains trained with them.

    Tokens before ``first`` are there to be attended to; their loss belongs to earlier partitions.
    """

    first: int
    end: int
    chains: Chains


def sample_chains(loss_mask: torch.Tensor, depths: int, retention: float) -> Chains:
    """Draw the chains of one sequence, with torch's random generator.

    Args:
        loss_mask: [1, n], 1 where a prediction is trained.
        depths: draft positions a chain has at most, the anchor's own included (K_train).
        retention: depth d keeps this to the power d of the positions; 1 keeps all.
    """
    anchor, depth = generate_cod_sample_indices(
        seq_length=loss_mask.shape[1], loss_mask=loss_mask, num_depths=depths, down_sample_ratio=retention, down_sample_ratio_min=0.0
    )
    deeper = depth > 0
    return Chains(anchor[deeper], depth[deeper])


def partitions(length: int, chains: Chains, width: int) -> list[Partition]:
    """Cut a sequence of ``length`` tokens into pieces of ``width`` tokens (P-EAGLE, Algorithm 1).

    Tokens (depth 0) and first mask positions (depth 1) go to the piece that holds their index; deeper positions follow
    their chain, so that no chain is cut. Tokens are cumulative: a piece attends to all tokens before its end.
    """
    home = (chains.anchor + 1) // width
    pieces = []
    for index in range(-(-length // width)):
        here = home == index
        pieces.append(Partition(index * width, min(length, (index + 1) * width), Chains(chains.anchor[here], chains.depth[here])))
    return pieces
