"""E-steps over points on the device, and what they hand over while the host goes on."""
