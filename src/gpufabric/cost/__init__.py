"""What a network costs: capital today; running costs and uncertainty come with their issue."""
