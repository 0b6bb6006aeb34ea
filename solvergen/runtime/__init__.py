"""What generated optimizers need at run time: NumPy, the standard library and nothing else.

``optimizer.Optimizer`` is the base class of every generated optimizer; ``definition`` says what a
generated package hands to it; ``backends`` run the update.
"""
