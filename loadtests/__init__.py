"""Load tests: Locust users and scenarios. They know an endpoint by HTTP alone."""
