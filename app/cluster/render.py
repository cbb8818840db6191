"""Every file in ``cluster/``, from the catalog."""

from pathlib import Path
from typing import Any

import yaml

from app.catalog import get_card, load_cards
from app.cluster import containers, kuberay, launcher, rules
from app.cluster.dashboards import as_json, uid
from app.cluster.panels import DASHBOARDS
from app.cluster.serve_configs import comparison, endpoint, serve_config

CPU_DEFAULT = "smollm2-135m-instruct"
MADE = "# Made by `peagle cluster render`; edit the catalog (app/cards) or app/cluster instead."
AWS_INSTANCES = {"g7e.2xlarge": 4, "p5.48xlarge": 2}
GCP_MACHINES = {"a3-highgpu-1g": 4}


def rendered() -> dict[str, str]:
    """The text of each file, by its path under ``cluster/``."""
    files = {"Dockerfile.gpu": containers.DOCKERFILE_GPU, "Dockerfile.cpu": containers.DOCKERFILE_CPU}
    for card in load_cards().values():
        proxies = "HeadOnly" if card.hardware == "cpu" else "EveryNode"
        name = f"serve/{card.name}.yaml"
        files[name] = _yaml(serve_config([endpoint(card)], proxies=proxies), f"serve deploy cluster/{name}")
        if card.hardware == "gpu":
            files[f"kuberay/{card.name}.yaml"] = _yaml(
                kuberay.ray_service(card), f"kubectl apply -f cluster/kuberay/{card.name}.yaml   (secret peagle-keys, volume claim peagle-state)"
            )
    three = serve_config(comparison(get_card(CPU_DEFAULT)), proxies="HeadOnly")
    files["serve/comparison.yaml"] = _yaml(three, "serve deploy cluster/serve/comparison.yaml: P-EAGLE, EAGLE-3 and no speculation side by side")
    for instance, most in AWS_INSTANCES.items():
        files[f"launcher/aws-{instance.split('.', maxsplit=1)[0]}.yaml"] = _yaml(launcher.aws(instance, most), "ray up; set PEAGLE_REPOSITORY")
    for machine, most in GCP_MACHINES.items():
        files[f"launcher/gcp-{machine}.yaml"] = _yaml(launcher.gcp(machine, most), "ray up; set project_id and PEAGLE_REPOSITORY")
    files["launcher/on-premise.yaml"] = _yaml(launcher.on_premise(), "ray up; set the addresses, the user and PEAGLE_REPOSITORY")
    files["docker-compose.yaml"] = _yaml(containers.compose(), "docker compose -f cluster/docker-compose.yaml up")
    files["prometheus/prometheus.yml"] = _yaml(containers.prometheus(), "docker-compose.yaml mounts it")
    files["prometheus/rules.yml"] = _yaml(rules.rules(), "Prometheus's rule_files; promtool check rules")
    files["grafana/provisioning/datasources/prometheus.yaml"] = _yaml(containers.data_source(), "docker-compose.yaml mounts it")
    files["grafana/provisioning/dashboards/peagle.yaml"] = _yaml(containers.dashboard_folder(), "docker-compose.yaml mounts it")
    for title in DASHBOARDS:
        files[f"grafana/dashboards/{uid(title)}.json"] = as_json(title)
    return files


class _Dumper(yaml.SafeDumper):
    """Text of several lines as it is, and nothing by reference."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def _yaml(content: dict[str, Any], how: str) -> str:
    return f"{MADE}\n# {how}\n{yaml.dump(content, Dumper=_Dumper, sort_keys=False, width=150)}"


def write(folder: Path) -> list[Path]:
    """Write the files whose text differs; which those were."""
    changed = []
    for name, text in rendered().items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            changed.append(path)
    return changed
