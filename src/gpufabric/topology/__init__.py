"""From a requirement to a Fabric: sizing, topologies, racks, cables, addresses."""
