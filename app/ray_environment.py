"""The environment Ray is started in; its processes, and all that run in them, take it over."""

ENVIRONMENT = {
    "RAY_worker_niceness": "0",  # Ray runs its workers at niceness 15, behind everything else on the machine; here they are what the machine is for
    "RAY_SERVE_THROUGHPUT_OPTIMIZED": "1",  # replicas talk over gRPC, with an event loop less each: loadtests/RESULTS.md has what that brings
    "RAY_SERVE_PROXY_USE_GRPC": "1",  # so do the proxies, which in Ray 2.60 the setting above forgets
}
ASSIGNMENTS = " ".join(f"{name}={value}" for name, value in ENVIRONMENT.items())  # as a shell and a Dockerfile read them
