"""Training as Caffe has it: solver files, the training loop, snapshots, on any model."""
