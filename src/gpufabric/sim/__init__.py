"""What a fabric delivers: flows with fair rates, in time."""
