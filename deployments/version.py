"""A deployment's version for Serve, which replaces every replica whose version differs.

``serve.run`` gives each deployment a random one, so that changing how many replicas there are would restart them all.
Ray 2.60 has no public way to set it; this module is the one place that does, and
``tests/unit/deployments/test_builder.py`` fails when Ray changes it.
"""

import hashlib
from typing import Any

from deployments.spec import EndpointSpec


def versioned(deployment: Any, spec: EndpointSpec) -> Any:
    """``deployment`` (a ``ray.serve.Deployment``) with a version that is the spec's, its replicas apart."""
    digest = hashlib.sha256(spec.model_dump_json(exclude={"replicas"}).encode()).hexdigest()[:16]
    return deployment.options(version=digest, _internal=True)
