"""The machine that runs a kernel: its memory, its threads, the order in which they take turns.

flow.py        basic blocks, and which registers matter where
slots.py       registers, constants and special registers as places in one list
values.py      arithmetic: an instruction and what it computes, as one function
access.py      loads, stores, atomics and addresses, as functions
warps.py       shuffles and votes
program.py     a kernel decoded: basic blocks of functions
regions.py     which buffer an address belongs to
memory.py      bytes of which every access is checked
marks.py       who has touched what, and whether two threads raced
clock.py       what happened before what
bundle.py      threads that run together, the lowest instruction first
wave.py        blocks that run at the same time, their shared memory and barriers
launch.py      a whole grid, under two orders where order can show
faults.py      what a fault says
"""
