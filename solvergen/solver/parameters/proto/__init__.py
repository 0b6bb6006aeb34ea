"""Caffe's messages: ``caffe.proto``, the same compiled, and classes made of it at run time."""
