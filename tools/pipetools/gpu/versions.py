"""Versions of what programs run on: driver, CUDA's libraries, PyTorch; and how fast GPU 0 copies
in its own memory, the ceiling of kernels that compute little. Found in a process of its own, which
has the libraries' folders. Its argument is how many bytes to copy."""

import ctypes
import json
import platform
import sys
import time

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


def copy_rate(size, times=10):
    """Of the fastest of several copies on GPU 0: `4.30 TB/s`, bytes read and written."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "not measured: no driver"

    def call(name, *arguments):
        if code := getattr(cuda, name)(*arguments):
            raise RuntimeError(f"{name} fails with {code}")

    context, buffers = ctypes.c_void_p(), (ctypes.c_uint64(), ctypes.c_uint64())
    try:
        call("cuInit", 0)
        call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        call("cuCtxSetCurrent", context)
        for buffer in buffers:
            call("cuMemAlloc_v2", ctypes.byref(buffer), ctypes.c_size_t(size))
        seconds = []
        for _ in range(times):
            begin = time.perf_counter()
            call("cuMemcpyDtoDAsync_v2", *buffers, ctypes.c_size_t(size), None)
            call("cuCtxSynchronize")
            seconds.append(time.perf_counter() - begin)
    except RuntimeError as error:
        return f"not measured: {error}"
    return f"{2 * size / min(seconds) / 1e12:.2f} TB/s"


def main():
    print(json.dumps({**{name: version_of(name) for name in LIBRARIES},
                      "PyTorch": torch_version(), "Python": platform.python_version(),
                      "copy": copy_rate(int(sys.argv[1]))}))


if __name__ == "__main__":
    main()
