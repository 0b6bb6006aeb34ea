"""Executes PTX, the assembly that NVRTC emits for a GPU, in NumPy: one array a register, over all threads.

    text.py          PTX text -> ``module.Module``
    module.py        what a text says, as frozen data
    types.py         the scalar types of PTX
    instructions/    what each instruction computes, one family a file
    memory.py ...    the machine: memory that is checked, warps, barriers, the order of things
    device.py        a ``Device`` that the CUDA backend's launcher drives as it would a GPU

See docs/ptx.md.
"""
