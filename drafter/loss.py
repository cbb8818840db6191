"""The training loss of a head, one partition of one sequence at a time."""

from typing import NamedTuple

import torch
from speculators.losses import resolve_loss_config
from speculators.models.eagle3 import Eagle3DraftModel
from speculators.models.peagle import PEagleDraftModel

from drafter.attention import chain_mask
from drafter.chains import Chains, Partition, partitions, sample_chains

Inputs = dict[str, torch.Tensor]


class Loss(NamedTuple):
    """Loss of a partition as a share of its sequence's mean, and how many predictions were the target's own.

    ``correct`` and ``total`` are [depths].
    """

    loss: torch.Tensor
    correct: torch.Tensor
    total: torch.Tensor


class DraftRows(NamedTuple):
    """Draft logits [rows, draft vocabulary], with each row's depth and the text position it predicts from, both [rows]."""

    logits: torch.Tensor
    depth: torch.Tensor
    position: torch.Tensor


class PEagleLoss(torch.nn.Module):
    """KL divergence from the target over all draft positions of one parallel pass.

    speculators' own forward takes a whole sequence and masks it densely; this one takes a partition, computes output
    rows only where there is a loss, and gives the same numbers.
    """

    def __init__(self, head: PEagleDraftModel, depths: int, retention: float, width: int) -> None:
        super().__init__()
        self.head = head
        self.depths = depths
        self.retention = retention
        self.width = width
        ((self._loss, _),) = resolve_loss_config("kl_div", "eager").values()

    def parts(self, inputs: Inputs) -> list[Partition]:
        """Draw the chains of a sequence and cut it; backward each part's loss before the next part's forward."""
        mask = inputs["loss_mask"]
        return partitions(mask.shape[1], sample_chains(mask, self.depths, self.retention), self.width)

    def forward(self, inputs: Inputs, part: Partition, rows_in_sequence: int) -> Loss:
        """The part's loss.

        Args:
            inputs: what ``drafter.recipe.training_inputs`` makes of a sample.
            part: one of ``parts(inputs)``.
            rows_in_sequence: draft positions with a loss in all parts together.
        """
        rows = self.draft(inputs, part)
        positions, targets_of = torch.unique(rows.position, return_inverse=True)
        with torch.no_grad():
            last = inputs["verifier_last_hidden_states"][0, positions]
            targets = self.head.verifier_lm_head(self.head.verifier_norm(last))
        each = self._loss(rows.logits[None], targets[targets_of][None])
        correct = rows.logits.argmax(-1) == targets.argmax(-1)[targets_of]
        # mask_hidden has a gradient in every part, chains or not: processes that share a batch must agree on it.
        return Loss(
            each.sum() / rows_in_sequence + 0.0 * self.head.mask_hidden.sum(),
            torch.bincount(rows.depth[correct], minlength=self.depths),
            torch.bincount(rows.depth, minlength=self.depths),
        )

    def draft(self, inputs: Inputs, part: Partition) -> DraftRows:
        """One parallel drafting pass over a part."""
        head, (anchor, depth) = self.head, part.chains
        masks = len(anchor)
        ids = torch.cat([inputs["input_ids"][0, : part.end], anchor.new_full((masks,), head.mask_token_id)])
        hidden = torch.cat([inputs["hidden_states"][0, : part.end], head.mask_hidden[0].to(inputs["hidden_states"].dtype)])
        if head.fc_norm is not None:
            chunks = hidden.chunk(len(head.fc_norm), dim=-1)
            hidden = torch.cat([norm(chunk) for norm, chunk in zip(head.fc_norm, chunks, strict=True)], dim=-1)
        hidden = head.fc(hidden)
        hidden = torch.cat([hidden[:-1], hidden[-1:].expand(masks, -1)])
        states = torch.cat([head.embed_tokens(ids).to(hidden.dtype), hidden], dim=-1)[None]
        position = torch.cat([torch.arange(part.end, device=ids.device), anchor + depth])
        rotary = head.rotary_emb(states, position[None])
        mask = chain_mask(part)
        for layer in head.layers:
            states = layer(states, attention_mask=mask, position_ids=position[None], position_embeddings=rotary)
        trained = inputs["loss_mask"][0, : part.end].bool()
        trained[: part.first] = False
        rows = torch.cat([trained.nonzero()[:, 0], part.end + torch.arange(masks, device=ids.device)])
        depths = torch.cat([depth.new_zeros(part.end), depth])
        return DraftRows(head.lm_head(head.norm(states[0, rows])), depths[rows], position[rows])

    @torch.no_grad()
    def accepted(self, inputs: Inputs) -> tuple[torch.Tensor, int]:
        """Greedy drafts at every place of a greedy answer: how many get through each depth [depths], of how many."""
        mask = inputs["loss_mask"]
        correct = torch.zeros(mask.shape[1], self.depths, dtype=torch.bool, device=mask.device)
        for part in partitions(mask.shape[1], sample_chains(mask, self.depths, 1.0), self.width):
            rows = self.draft(inputs, part)
            inside = rows.position + 1 < mask.shape[1]
            drafted = rows.logits[inside].argmax(-1)
            drafted = drafted + self.head.d2t[drafted]
            position, depth = rows.position[inside], rows.depth[inside]
            correct[position - depth, depth] = drafted == inputs["input_ids"][0, position + 1]
        places = mask[0].bool()
        return correct[places].cumprod(dim=1).sum(dim=0), int(places.sum())


class Eagle3Loss(torch.nn.Module):
    """speculators' own EAGLE-3 loss over ``depths`` sequential steps (training-time test)."""

    def __init__(self, head: Eagle3DraftModel, depths: int, decay: float) -> None:
        super().__init__()
        self.head = head
        self.depths = depths
        self._call = {"loss_config": resolve_loss_config("kl_div", "eager"), "ttt_steps": depths, "ttt_step_loss_decay": decay}

    def parts(self, inputs: Inputs) -> list[Partition]:
        """The whole sequence: its memory does not grow with the depth as P-EAGLE's does."""
        nothing = torch.zeros(0, dtype=torch.long)
        return [Partition(0, inputs["loss_mask"].shape[1], Chains(nothing, nothing))]

    def forward(self, inputs: Inputs, part: Partition, rows_in_sequence: int) -> Loss:  # noqa: ARG002
        """The loss of the whole sequence."""
        _, loss, metrics = self.head(**inputs, **self._call)
        names = [f"full_acc_{depth}" for depth in range(self.depths)]
        return Loss(loss, torch.stack([metrics[f"{name}_sum"] for name in names]), torch.stack([metrics[f"{name}_total"] for name in names]))

    @torch.no_grad()
    def accepted(self, inputs: Inputs) -> tuple[torch.Tensor, int]:
        """Drafts that get through each depth [depths], of how many places."""
        _, _, metrics = self.head(**inputs, **self._call)
        through = torch.stack([metrics[f"cond_acc_{depth}_sum"] for depth in range(self.depths)])
        return through, int(metrics["full_acc_0_total"])
