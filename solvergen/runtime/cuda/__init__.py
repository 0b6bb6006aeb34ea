"""What the CUDA backend is made of: the compiler NVRTC, the cache of its output, tables, the driver."""
