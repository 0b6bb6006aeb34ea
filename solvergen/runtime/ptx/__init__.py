"""Executes PTX, the assembly that NVRTC emits for a GPU, in NumPy: one array a register, over all threads.

    text.py          PTX text -> ``module.Module``
    module.py        what a text says, as frozen data
    types.py         the scalar types of PTX
    instructions/    what each instruction computes, one family a file
    machine/         memory that is checked, threads, barriers, the order of things
    observe.py       what an observer is told
    compiler.py      NVRTC, asked for PTX
    device.py        a ``Device`` that the CUDA backend's launcher drives as it would a GPU

See docs/ptx.md.
"""
