"""The traffic limit: a loop in C that reads and writes the arrays which a rule must read and write.

Its arithmetic is an integer addition an element, so that memory alone decides its speed. It has the interface
of a kernel, and the CPU backend's own launcher runs it: same threads, same chunks, arrays placed alike.

A rule of several passes moves some arrays more than once. There are as many loops then as it takes to do the
same, one after the other over all tensors; which pass moves what isn't known here, and makes no difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from solvergen.runtime.definition import Definition
from solvergen.runtime.dtypes import STORAGE_TYPES, compute_dtype

_TEXT = """\
/* The memory traffic of {name}: reads {read}; writes {written}. */

#include <stdint.h>

struct sg_chunk {{
    int32_t tensor;
    int32_t count;
    int64_t start;
}};

struct sg_job {{
    void *const *pointers;
    const int32_t *rows;
    const void *table;
    const struct sg_chunk *chunks;
}};

static __attribute__((noinline)) void run({parameters}, int64_t count) {{
{before}    for (int64_t i = 0; i < count; ++i) {{
        const {sum_type} sum = {sum};
{stores}
    }}
{after}}}

__attribute__((visibility("default")))
void sg_kernel(const struct sg_job *job, int64_t first, int64_t last) {{
    for (int64_t c = first; c < last; ++c) {{
        const struct sg_chunk chunk = job->chunks[c];
        void *const *buffers = job->pointers + (int64_t)chunk.tensor * {n_buffers};
        run({arguments}, chunk.count);
    }}
}}
"""


def bytes_per_element(definition: Definition, options: Mapping[str, bool], param: str, grad: str) -> int:
    """Bytes that an update must move for each element: every read and every write of a buffer once."""
    widths = _widths(definition, param, grad)
    moved = (*definition.buffers_read(**options), *definition.buffers_written(**options))
    return sum(widths[buffer] for buffer in moved)


def sweeps(
    definition: Definition, options: Mapping[str, bool]
) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    """What each loop over all elements reads and writes: every buffer as often as the rule does."""
    reads = Counter(definition.buffers_read(**options))
    writes = Counter(definition.buffers_written(**options))
    count = max((*reads.values(), *writes.values()))
    return tuple(
        (
            tuple(name for name, times in reads.items() if times >= count - i),
            tuple(name for name, times in writes.items() if times >= count - i),
        )
        for i in range(count)
    )


def traffic_text(
    definition: Definition, options: Mapping[str, bool], param: str, grad: str, sweep: int = 0
) -> str:
    """One of the loops for these options and storage types, as C."""
    widths = _widths(definition, param, grad)
    read, written = sweeps(definition, options)[sweep]
    buffers = [name for name in widths if name in read or name in written]
    only_read = [name for name in buffers if name not in written]
    # Streams that are read only must enter a result, or the compiler leaves them out.
    terms = " + ".join(f"{_local(widths, name)}[i]" for name in only_read) or "1"
    sum_type = _c_type(max(widths[name] for name in buffers))
    stores = [_store(widths, name, name in read) for name in buffers if name in written]
    return _TEXT.format(
        sum_type=sum_type,
        before="" if stores else f"    {sum_type} total = 0;\n",
        after="" if stores else '    __asm__ volatile("" : : "r"(total)); /* or nothing need be read */\n',
        name=definition.name,
        read=", ".join(dict.fromkeys(read)) or "nothing",
        written=", ".join(dict.fromkeys(written)) or "nothing",
        parameters=", ".join(
            f"{'' if name in written else 'const '}{_c_type(widths[name])} *restrict {_local(widths, name)}"
            for name in buffers
        ),
        sum=terms,
        stores="\n".join(stores or ["        total += sum;"]),
        arguments=", ".join(
            f"({'' if name in written else 'const '}{_c_type(widths[name])} *)"
            f"buffers[{list(widths).index(name)}] + chunk.start"
            for name in buffers
        ),
        n_buffers=len(widths),
    )


def _widths(definition: Definition, param: str, grad: str) -> dict[str, int]:
    """Bytes of an element of each buffer, in the order of the pointer table."""
    widths = {"param": STORAGE_TYPES[param].itemsize, "grad": STORAGE_TYPES[grad].itemsize}
    arrays = (*definition.array_states, *definition.carried)
    copies = {name: STORAGE_TYPES[dtype].itemsize for name, dtype in definition.copies.items()}
    return {**widths, **dict.fromkeys(arrays, compute_dtype(param).itemsize), **copies}


def _local(widths: Mapping[str, int], name: str) -> str:
    return f"b{list(widths).index(name)}"  # a state's own name may be a word of C


def _c_type(width: int) -> str:
    return f"uint{8 * width}_t"


def _store(widths: Mapping[str, int], name: str, read: bool) -> str:
    local = _local(widths, name)
    return f"        {local}[i] {'+=' if read else '='} ({_c_type(widths[name])})sum;"
