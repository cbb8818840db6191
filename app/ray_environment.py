"""The environment Ray is started in; its processes, and all that run in them, take it over."""

# What Serve's RAY_SERVE_THROUGHPUT_OPTIMIZED sets, without what it hides: it keeps back log lines and turns on direct ingress.
ENVIRONMENT = {
    "RAY_worker_niceness": "0",  # Ray runs its workers at niceness 15, behind everything else on the machine; here they are what the machine is for
    "RAY_SERVE_USE_GRPC_BY_DEFAULT": "1",  # between proxies and replicas; loadtests/RESULTS.md has what that brings
    "RAY_SERVE_RUN_USER_CODE_IN_SEPARATE_THREAD": "0",  # one event loop a replica, not three
    "RAY_SERVE_RUN_ROUTER_IN_SEPARATE_LOOP": "0",
}
ASSIGNMENTS = " ".join(f"{name}={value}" for name, value in ENVIRONMENT.items())  # as a shell and a Dockerfile read them
