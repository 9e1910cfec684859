"""From a Fabric to paths: channels, shortest paths, forwarding tables, deadlock check."""
