"""What a draft costs beside the pass that verifies it."""

from pathlib import Path

from deployments.spec import EndpointSpec
from deployments.speculation import Eagle3, NoSpeculation


def draft_cost(spec: EndpointSpec) -> float:
    """Time to draft as a share of the target's pass, by the bytes of weights each reads: small batches are bound by memory.

    P-EAGLE reads its head once a pass, EAGLE-3 once a draft token. 0 where weights are not in a local folder.
    """
    if isinstance(spec.speculation, NoSpeculation):
        return 0.0
    head, target = _weights(spec.speculation.head), _weights(spec.model)
    passes = spec.speculation.num_speculative_tokens if isinstance(spec.speculation, Eagle3) else 1
    return passes * head / target if target else 0.0


def _weights(folder: str) -> int:
    return sum(path.stat().st_size for path in Path(folder).glob("*.safetensors"))
