"""What GPUs do over the network: collectives, training and inference steps."""
