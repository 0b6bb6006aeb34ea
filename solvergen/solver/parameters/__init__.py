"""A solver's parameters: what Caffe's ``SolverParameter`` holds, from prototxt, YAML and Python."""
