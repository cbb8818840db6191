"""What a client sees: the gateway, the endpoint manager, the catalog, the command line."""
