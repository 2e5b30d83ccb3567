"""What naysay costs beside its peers, measured in one process each: `make bench`."""
