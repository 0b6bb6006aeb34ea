"""What a kernel is compiled for: the processor as ``-march=native`` sees it, and the C library."""

from __future__ import annotations

import os
import platform
import sys
from functools import lru_cache

_X86 = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags")
_ARM = ("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "Features")


@lru_cache(maxsize=1)
def processor() -> str:
    """A description of the processor and system, the same in every process on this machine.

    A home directory may be shared by machines of different kinds, and code for one may not run on another.
    """
    parts = [sys.platform, platform.machine()]
    if sys.platform.startswith("linux"):
        parts += [_c_library(), *_first_processor()]
    elif sys.platform == "darwin":
        parts += [_sysctl(name) for name in ("machdep.cpu.brand_string", "hw.cpufamily", "hw.cpusubfamily")]
    return "\n".join(parts)


def _first_processor() -> list[str]:
    # The file has a paragraph for each CPU and the kernel makes them one by one: read the first only.
    found = []
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace", buffering=4096) as file:
            for line in file:
                if not line.strip():
                    break
                key = line.partition(":")[0].strip()
                if key in _X86 or key in _ARM:
                    found.append(line.strip())
    except OSError:
        return []
    return found


def _c_library() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):  # another C library
        return ""


def _sysctl(name: str) -> str:
    import ctypes

    library = ctypes.CDLL(None)
    size = ctypes.c_size_t(0)
    if library.sysctlbyname(name.encode(), None, ctypes.byref(size), None, 0) != 0:
        return ""
    buffer = ctypes.create_string_buffer(size.value)
    if library.sysctlbyname(name.encode(), buffer, ctypes.byref(size), None, 0) != 0:
        return ""
    return f"{name}: {buffer.raw.hex()}"
