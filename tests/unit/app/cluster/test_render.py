"""What stands in ``cluster/`` is what the catalog renders, and what Ray, Serve and Kubernetes read."""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import ray
import yaml
from ray.serve.schema import ServeDeploySchema

from app.catalog import REPOSITORY, load_cards
from app.cluster.render import rendered, write
from app.main import declared_endpoints

FILES = rendered()
GPU_CARDS = [card for card in load_cards().values() if card.hardware == "gpu"]


def of(folder):
    return [pytest.param(yaml.safe_load(text), id=name) for name, text in FILES.items() if name.startswith(folder)]


def test_the_committed_files_are_what_is_rendered(tmp_path):
    committed = {str(path.relative_to(REPOSITORY / "cluster")): path.read_text() for path in (REPOSITORY / "cluster").rglob("*") if path.is_file()}
    assert committed == FILES
    assert len(write(tmp_path)) == len(FILES)
    assert write(tmp_path) == []


@pytest.mark.parametrize("config", of("serve/"))
def test_serve_takes_the_configs(config):
    schema = ServeDeploySchema.model_validate(config)
    for request in declared_endpoints(schema.applications[0].args):
        spec = request.to_spec()
        assert spec.max_queued_requests == 8 * spec.max_num_seqs


@pytest.mark.parametrize("config", of("launcher/"))
def test_ray_up_takes_the_clusters(config):
    schema = json.loads((Path(ray.__file__).parent / "autoscaler" / "ray-schema.json").read_text())
    jsonschema.validate(config, schema)


@pytest.mark.parametrize("card", GPU_CARDS, ids=lambda card: card.name)
def test_a_ray_service_has_the_cards_gpus_and_serves_the_card(card):
    service = yaml.safe_load(FILES[f"kuberay/{card.name}.yaml"])
    assert (service["apiVersion"], service["kind"]) == ("ray.io/v1", "RayService")
    cluster = service["spec"]["rayClusterConfig"]
    assert cluster["rayVersion"] == ray.__version__
    (group,) = cluster["workerGroupSpecs"]
    assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
    for template in (cluster["headGroupSpec"]["template"], group["template"]):
        (container,) = template["spec"]["containers"]
        mounts = [mount["name"] for one in (container, *template["spec"]["initContainers"]) for mount in one["volumeMounts"]]
        assert set(mounts) == {volume["name"] for volume in template["spec"]["volumes"]}
        assert container["livenessProbe"]["exec"]["command"]
    limits = group["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits["nvidia.com/gpu"] == str(card.minimum_gpus)
    config = ServeDeploySchema.model_validate(yaml.safe_load(service["spec"]["serveConfigV2"]))
    assert [request.model for request in declared_endpoints(config.applications[0].args)] == [card.name]


@pytest.mark.parametrize("name", ["Dockerfile.gpu", "Dockerfile.cpu"])
def test_images_run_as_a_user_from_pinned_bases(name):
    lines = FILES[name].splitlines()
    bases = [line.split()[1] for line in lines if line.startswith("FROM")]
    assert all(":" in base and not base.endswith(":latest") for base in bases)
    assert "USER 1000" in lines
    assert "rm -rf /var/lib/apt/lists" in FILES[name]
    assert not any(line.startswith("ADD") for line in lines)
    # Not Debian's versions (DL3008): its mirrors keep the newest alone.
    command = [Path(sys.executable).parent / "hadolint", "--ignore=DL3008", "-"]
    linted = subprocess.run(command, input=FILES[name], capture_output=True, text=True, check=False)
    assert linted.returncode == 0, linted.stdout


def test_compose_mounts_what_is_there():
    services = yaml.safe_load(FILES["docker-compose.yaml"])["services"]
    mounted = [volume.split(":")[0] for name in ("prometheus", "grafana") for volume in services[name]["volumes"]]
    for folder in mounted:
        assert any(name.startswith(folder.removeprefix("./")) for name in FILES), folder
    assert services["peagle"]["build"]["dockerfile"].removeprefix("cluster/") in FILES
