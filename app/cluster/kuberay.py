"""KubeRay: a card as a ``RayService`` (ray.io/v1)."""

from typing import Any

import yaml

from app.catalog import ModelCard
from app.cluster.serve_configs import endpoint, serve_config

RAY = "2.60.0"
IMAGE = "peagle-serve:gpu"  # cluster/Dockerfile.gpu
EVERY = "0.0.0.0"  # noqa: S104
ALIVE = "wget -q -O- http://localhost:52365/api/local_raylet_healthz | grep success"
SERVES = "wget -q -O- http://localhost:8000/-/healthz | grep success"


def ray_service(card: ModelCard) -> dict[str, Any]:
    """A head without GPUs and a group of workers, one replica each, that grows with the endpoint's replicas."""
    wanted = endpoint(card)
    config = serve_config([wanted], host=EVERY)  # inside the pod, and only with a key
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayService",
        "metadata": {"name": f"peagle-{card.name}"},
        "spec": {
            "serveConfigV2": yaml.safe_dump(config, sort_keys=False),
            "rayClusterConfig": {
                "rayVersion": RAY,
                "enableInTreeAutoscaling": True,
                "headGroupSpec": {
                    "rayStartParams": {"num-cpus": "0", "dashboard-host": EVERY},
                    "template": _pod("head", cpus=4, memory="16Gi", gpus=0, liveness=ALIVE, readiness=ALIVE),
                },
                "workerGroupSpecs": [
                    {
                        "groupName": "gpu",
                        "replicas": wanted["min_replicas"],
                        "minReplicas": wanted["min_replicas"],
                        "maxReplicas": wanted["max_replicas"],
                        "rayStartParams": {},
                        "template": _pod("worker", cpus=8, memory=_memory(card), gpus=card.minimum_gpus, liveness=ALIVE, readiness=SERVES),
                    }
                ],
            },
        },
    }


def _memory(card: ModelCard) -> str:
    return f"{int(card.weights_gib) + 32}Gi"  # weights pass through the host's memory


def _pod(role: str, cpus: int, memory: str, gpus: int, liveness: str, readiness: str) -> dict[str, Any]:
    resources: dict[str, Any] = {"cpu": str(cpus), "memory": memory} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    ports = {"gcs-server": 6379, "dashboard": 8265, "client": 10001} if role == "head" else {}
    container = {
        "name": f"ray-{role}",
        "image": IMAGE,
        "env": [{"name": "PEAGLE_HOME", "value": "/var/lib/peagle"}, {"name": "PEAGLE_KEYS", "value": "/etc/peagle/keys.json"}],
        "ports": [{"name": name, "containerPort": port} for name, port in {**ports, "serve": 8000, "metrics": 8080}.items()],
        "resources": {"limits": resources, "requests": resources},
        "livenessProbe": _probe(liveness, period=10, failures=12),
        "readinessProbe": _probe(readiness, period=5, failures=2),
        "volumeMounts": [
            {"name": "keys", "mountPath": "/etc/peagle", "readOnly": True},
            {"name": "state", "mountPath": "/var/lib/peagle"},
            {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108  # vLLM's workers talk through it
        ],
    }
    # A secret's files belong to root; the server reads keys from a file that only its own user can.
    copy = {
        "name": "keys",
        "image": IMAGE,
        "command": ["sh", "-c", "install -m 600 /secret/keys.json /etc/peagle/keys.json"],
        "volumeMounts": [{"name": "secret", "mountPath": "/secret", "readOnly": True}, {"name": "keys", "mountPath": "/etc/peagle"}],
    }
    volumes: list[dict[str, Any]] = [
        {"name": "secret", "secret": {"secretName": "peagle-keys"}},
        {"name": "keys", "emptyDir": {"medium": "Memory"}},
        {"name": "state", "persistentVolumeClaim": {"claimName": "peagle-state"}} if role == "head" else {"name": "state", "emptyDir": {}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}},
    ]
    annotations = {"prometheus.io/scrape": "true", "prometheus.io/port": "8080"}
    spec = {"securityContext": {"runAsUser": 1000, "fsGroup": 1000}, "initContainers": [copy], "containers": [container], "volumes": volumes}
    return {"metadata": {"annotations": annotations}, "spec": spec}


def _probe(command: str, period: int, failures: int) -> dict[str, Any]:
    return {
        "exec": {"command": ["sh", "-c", command]},
        "initialDelaySeconds": 10,
        "timeoutSeconds": 5,
        "periodSeconds": period,
        "failureThreshold": failures,
    }
