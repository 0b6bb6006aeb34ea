"""The Solver: what Caffe's solver does, on any model."""
