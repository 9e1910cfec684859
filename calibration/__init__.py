"""Fits of the few free constants of the models, to be run again by anyone: `make calibrate`."""
