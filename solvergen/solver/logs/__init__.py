"""What is told of a training: Caffe's log lines, JSON lines, a progress bar; and reading such logs again."""
