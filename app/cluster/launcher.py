"""Ray's cluster launcher (``ray up``): AWS, Google Cloud, and machines of one's own."""

from typing import Any

from app.ray_environment import ASSIGNMENTS

START_HEAD = ["ray stop", f"{ASSIGNMENTS} ray start --head --port=6379 --autoscaling-config=~/ray_bootstrap_config.yaml --metrics-export-port=8080"]
START_WORKER = ["ray stop", f"{ASSIGNMENTS} ray start --address=$RAY_HEAD_IP:6379 --metrics-export-port=8080"]
SETUP = [
    "git clone --depth 1 $PEAGLE_REPOSITORY peagle-serve || git -C peagle-serve pull",
    "python3.11 -m pip install './peagle-serve[gpu]'",
]


def _cluster(name: str, provider: dict[str, Any], auth: dict[str, Any], nodes: dict[str, Any], most: int) -> dict[str, Any]:
    return {
        "cluster_name": name,
        "max_workers": most,
        "upscaling_speed": 1.0,
        "idle_timeout_minutes": 10,
        "provider": provider,
        "auth": auth,
        "available_node_types": nodes,
        "head_node_type": "head",
        "setup_commands": SETUP,
        "head_start_ray_commands": START_HEAD,
        "worker_start_ray_commands": START_WORKER,
    }


def aws(instance_type: str, most: int) -> dict[str, Any]:
    """A head without GPUs and up to ``most`` GPU instances."""
    disk = {"BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 500, "VolumeType": "gp3"}}]}
    nodes = {
        "head": {"node_config": {"InstanceType": "m7i.2xlarge", **disk}, "resources": {"CPU": 0}, "min_workers": 0, "max_workers": 0},
        "gpu": {"node_config": {"InstanceType": instance_type, **disk}, "resources": {}, "min_workers": 1, "max_workers": most},
    }
    name = f"peagle-{instance_type.replace('.', '-')}"
    return _cluster(name, {"type": "aws", "region": "us-east-1", "cache_stopped_nodes": False}, {"ssh_user": "ubuntu"}, nodes, most)


def gcp(machine_type: str, most: int) -> dict[str, Any]:
    """A head without GPUs and up to ``most`` machines with a GPU."""
    image = "projects/deeplearning-platform-release/global/images/family/common-cu128-ubuntu-2204"
    disk = {"disks": [{"boot": True, "autoDelete": True, "type": "PERSISTENT", "initializeParams": {"diskSizeGb": 500, "sourceImage": image}}]}
    gpu = {"machineType": machine_type, "scheduling": [{"onHostMaintenance": "TERMINATE"}], **disk}
    nodes = {
        "head": {"node_config": {"machineType": "n2-standard-8", **disk}, "resources": {"CPU": 0}, "min_workers": 0, "max_workers": 0},
        "gpu": {"node_config": gpu, "resources": {}, "min_workers": 1, "max_workers": most},
    }
    provider = {"type": "gcp", "region": "us-central1", "availability_zone": "us-central1-a", "project_id": "YOUR_PROJECT"}
    return _cluster(f"peagle-{machine_type}", provider, {"ssh_user": "ubuntu"}, nodes, most)


def on_premise() -> dict[str, Any]:
    """Machines that are there: the first is the head."""
    return {
        "cluster_name": "peagle",
        "provider": {"type": "local", "head_ip": "HEAD_IP", "worker_ips": ["WORKER_IP"]},
        "auth": {"ssh_user": "YOUR_USER", "ssh_private_key": "~/.ssh/id_ed25519"},
        "upscaling_speed": 1.0,
        "idle_timeout_minutes": 10,
        "setup_commands": SETUP,
        "head_start_ray_commands": START_HEAD,
        "worker_start_ray_commands": START_WORKER,
    }
