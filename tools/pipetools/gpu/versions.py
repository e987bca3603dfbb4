"""Versions of what programs run on: driver, CUDA's libraries, PyTorch. Found in a process of its
own, which has the libraries' folders."""

import ctypes
import json
import platform

# Library, function, whether the number comes back by a pointer.
LIBRARIES = {
    "driver for CUDA": (["libcuda.so.1"], "cuDriverGetVersion", True),
    "cuBLASLt": (["libcublasLt.so.13", "libcublasLt.so.12"], "cublasLtGetVersion", False),
    "cuDNN": (["libcudnn.so.9"], "cudnnGetVersion", False),
    "NCCL": (["libnccl.so.2"], "ncclGetVersion", True),
    "NVRTC": (["libnvrtc.so.13", "libnvrtc.so.12"], "nvrtcVersion", None),
}


def dotted(name, number):
    """`13.0` of 13000, `9.19.0` of 91900, `2.28.9` of 22809."""
    if name.startswith("driver"):
        return f"{number // 1000}.{number % 1000 // 10}"
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def version_of(name):
    files, function, by_pointer = LIBRARIES[name]
    for file in files:
        try:
            call = getattr(ctypes.CDLL(file), function)
        except (OSError, AttributeError):
            continue
        first, second = ctypes.c_int(), ctypes.c_int()
        if by_pointer is None:
            call(ctypes.byref(first), ctypes.byref(second))
            return f"{first.value}.{second.value}"
        if by_pointer:
            call(ctypes.byref(first))
            return dotted(name, first.value)
        call.restype = ctypes.c_size_t
        return dotted(name, call())
    return "none"


def torch_version():
    try:
        import torch
    except ImportError:
        return "none"
    return torch.__version__


def main():
    print(json.dumps({**{name: version_of(name) for name in LIBRARIES},
                      "PyTorch": torch_version(), "Python": platform.python_version()}))


if __name__ == "__main__":
    main()
