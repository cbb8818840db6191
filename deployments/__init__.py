"""What runs on Ray: one endpoint spec becomes one Serve application."""
