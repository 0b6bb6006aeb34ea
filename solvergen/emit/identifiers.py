"""Identifiers of the targets: a spec's names, kept as they are wherever the target allows it.

Anything that a C or CUDA compiler claims (keywords, built-in variables and types, macros, names of
the kernel's skeleton) gets an underscore behind it. The same names always give the same result.
"""

from __future__ import annotations

from collections.abc import Iterable

_C_KEYWORDS = """
alignas alignof and and_eq asm atomic_cancel atomic_commit atomic_noexcept auto bitand bitor bool break
case catch char char8_t char16_t char32_t class co_await co_return co_yield compl concept const
const_cast consteval constexpr constinit continue decltype default delete do double dynamic_cast else
enum explicit export extern false final float for friend goto if import inline int long module mutable
namespace new noexcept not not_eq nullptr operator or or_eq override private protected public register
reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct
switch synchronized template this thread_local throw true try typedef typeid typename typeof
typeof_unqual union unsigned using virtual void volatile wchar_t while xor xor_eq
"""
_C_TYPES = """
int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t ptrdiff_t size_t
ssize_t half half2 nv_bfloat16 nv_bfloat162 dim3 cudaStream_t cudaError_t texture surface uchar ushort
uint ulong
"""
_C_NAMES = """
threadIdx blockIdx blockDim gridDim warpSize NULL unix linux i386 EOF errno assert offsetof NAN INFINITY
main
"""
_C_PREFIXES = (
    "FLT_", "DBL_", "LDBL_", "INT_", "UINT_", "INT8_", "INT16_", "INT32_", "INT64_", "UINT8_",
    "UINT16_", "UINT32_", "UINT64_", "SIZE_", "CHAR_", "SG_", "CUDA_", "FP_", "M_", "__", "SCHAR_",
    "LONG_", "WCHAR_", "INTPTR_", "UINTPTR_", "INTMAX_", "UINTMAX_", "PTRDIFF_", "DECIMAL_", "WINT_",
    "SIG_",
)  # fmt: skip
_VECTORS = tuple(
    f"{base}{width}"
    for base in (
        "char",
        "uchar",
        "short",
        "ushort",
        "int",
        "uint",
        "long",
        "ulong",
        "longlong",
        "ulonglong",
        "float",
        "double",
    )
    for width in "1234"
)

C_RESERVED = frozenset(f"{_C_KEYWORDS} {_C_TYPES} {_C_NAMES}".split()) | frozenset(_VECTORS)


def is_reserved_in_c(name: str) -> bool:
    """Would ``name`` mean something else to a C, C++ or CUDA compiler?"""
    return name in C_RESERVED or name.startswith(_C_PREFIXES)


def c_identifiers(names: Iterable[str]) -> dict[str, str]:
    """A C identifier for each name, all of them distinct: the name itself wherever C leaves it free."""
    names = tuple(names)
    taken = set(names)
    result: dict[str, str] = {}
    for name in names:
        identifier = name
        if is_reserved_in_c(name):
            # What is reserved by how it begins needs another beginning.
            identifier = f"value_{name}" if name.startswith(_C_PREFIXES) else f"{name}_"
            while identifier in taken:
                identifier += "_"
            taken.add(identifier)
        result[name] = identifier
    return result


def aliases(helpers: Iterable[str], taken: Iterable[str]) -> dict[str, str]:
    """A name for each Python helper that none of the spec's ``taken`` names hides."""
    used = set(taken)
    result: dict[str, str] = {}
    for helper in helpers:
        alias = helper
        while alias in used:
            alias += "_"
        used.add(alias)
        result[helper] = alias
    return result
