"""Images, and a compose file with Prometheus and Grafana beside the server."""

from typing import Any

from app.cluster import dashboards
from app.ray_environment import ASSIGNMENTS

DASHBOARDS = "/var/lib/grafana/dashboards"
PROMETHEUS, GRAFANA = "prom/prometheus:v3.7.3", "grafana/grafana:12.3.0"

DOCKERFILE_GPU = f"""# CUDA: docker build -f cluster/Dockerfile.gpu -t peagle-serve:gpu .
FROM nvidia/cuda:12.9.1-runtime-ubuntu24.04

SHELL ["/bin/bash", "-o", "pipefail", "-c"]
RUN apt-get update \\
  && apt-get install --yes --no-install-recommends ca-certificates curl wget \\
  && rm -rf /var/lib/apt/lists/*
COPY --from=ghcr.io/astral-sh/uv:0.9.13 /uv /usr/local/bin/uv
WORKDIR /opt/peagle-serve
COPY . .
RUN uv venv --python 3.11 /opt/venv \\
  && uv pip install --no-cache --compile-bytecode --python /opt/venv/bin/python --editable '.[gpu]' \\
  && useradd --create-home --uid 1000 ray \\
  && mkdir -p /var/lib/peagle && chown ray /var/lib/peagle
ENV PATH=/opt/venv/bin:$PATH PEAGLE_HOME=/var/lib/peagle {ASSIGNMENTS}
USER 1000
EXPOSE 8000 8080 8265
"""

DOCKERFILE_CPU = f"""# CPU, for demonstrations and tests: docker build -f cluster/Dockerfile.cpu -t peagle-serve:cpu .
FROM python:3.11-slim-bookworm

RUN apt-get update \\
  && apt-get install --yes --no-install-recommends build-essential libnuma1 libtcmalloc-minimal4 make wget \\
  && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/peagle-serve
COPY . .
RUN make .venv/ready PYTHON=python3.11 \\
  && useradd --create-home --uid 1000 ray \\
  && mkdir -p /var/lib/peagle && chown ray /var/lib/peagle
ENV PATH=/opt/peagle-serve/.venv/bin:$PATH PEAGLE_HOME=/var/lib/peagle {ASSIGNMENTS}
USER 1000
EXPOSE 8000 8080 8265
CMD ["sh", "-c", "ray start --head --num-cpus=8 --metrics-export-port=8080 && serve run cluster/serve/smollm2-135m-instruct.yaml"]
"""


def compose() -> dict[str, Any]:
    """The CPU default, Prometheus and Grafana on one machine; only this machine can call them."""
    return {
        "services": {
            "peagle": {
                "build": {"context": "..", "dockerfile": "cluster/Dockerfile.cpu"},
                "image": "peagle-serve:cpu",
                "network_mode": "host",  # without a key the gateway answers this machine alone
                "shm_size": "2gb",
                "volumes": ["state:/var/lib/peagle"],
                "healthcheck": {
                    "test": ["CMD-SHELL", "wget -q -O- http://127.0.0.1:8000/ready || exit 1"],
                    "interval": "10s", "timeout": "5s", "retries": 60,
                },
            },
            "prometheus": {
                "image": PROMETHEUS, "network_mode": "host", "volumes": ["./prometheus:/etc/prometheus:ro"],
                "command": ["--config.file=/etc/prometheus/prometheus.yml", "--web.listen-address=127.0.0.1:9090"],
            },
            "grafana": {
                "image": GRAFANA, "network_mode": "host", "depends_on": ["prometheus"],
                "volumes": [
                    "./grafana/provisioning:/etc/grafana/provisioning:ro",
                    f"./grafana/dashboards:{DASHBOARDS}:ro",
                ],
                "environment": {"GF_SERVER_HTTP_ADDR": "127.0.0.1", "GF_AUTH_ANONYMOUS_ENABLED": "true", "GF_AUTH_ANONYMOUS_ORG_ROLE": "Viewer"},
            },
        },
        "volumes": {"state": {}},
    }  # fmt: skip


def prometheus() -> dict[str, Any]:
    """Scrapes Ray's metrics, in which vLLM's and ours are, on this machine.

    Less often than Ray reports (10 s): what was not reported anew is not in a scrape.
    """
    return {
        "global": {"scrape_interval": "15s"},
        "rule_files": ["rules.yml"],
        "scrape_configs": [{"job_name": "ray", "static_configs": [{"targets": ["127.0.0.1:8080"]}]}],
    }


def data_source() -> dict[str, Any]:
    """Grafana's provisioning: where the figures come from."""
    return {"apiVersion": 1, "datasources": [{**dashboards.data_source("http://127.0.0.1:9090"), "isDefault": True}]}


def dashboard_folder() -> dict[str, Any]:
    """Grafana's provisioning: where the dashboards lie."""
    provider = {
        "name": dashboards.FOLDER,
        "folder": dashboards.FOLDER,
        "folderUid": dashboards.FOLDER,
        "type": "file",
        "options": {"path": DASHBOARDS},
    }
    return {"apiVersion": 1, "providers": [provider]}
