"""What NCCL takes to make communicators of one rank on GPU 0, one after the other: seconds of each,
and the GPU's memory that it takes. Found in a process of its own, which has the libraries' folders
and the variable CUDA_MODULE_LOADING. Its argument is how many."""

import ctypes
import json
import sys
import time

IN_PROGRESS = 7


class Id(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


class Config(ctypes.Structure):
    """`ncclConfig_t` of NCCL 2.14, which later versions take."""

    _fields_ = [("size", ctypes.c_size_t), ("magic", ctypes.c_uint), ("version", ctypes.c_uint),
                ("blocking", ctypes.c_int)]


def call(library, name, *arguments, other=0):
    code = getattr(library, name)(*arguments)
    if code not in (0, other):
        raise RuntimeError(f"{name} fails with {code}")


def free_bytes(cuda):
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    call(cuda, "cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    return free.value


def make(nccl):
    """Waits as a program waits: it asks until the communicator is there."""
    identifier, communicator, state = Id(), ctypes.c_void_p(), ctypes.c_int(IN_PROGRESS)
    config = Config(ctypes.sizeof(Config), 0xCAFEBEEF, 21400, 0)
    call(nccl, "ncclGetUniqueId", ctypes.byref(identifier))
    call(nccl, "ncclCommInitRankConfig", ctypes.byref(communicator), 1, identifier, 0,
         ctypes.byref(config), other=IN_PROGRESS)
    while state.value == IN_PROGRESS:
        call(nccl, "ncclCommGetAsyncError", communicator, ctypes.byref(state))
        time.sleep(1e-3)
    if state.value:
        raise RuntimeError(f"the communicator fails with {state.value}")


def main():
    context = ctypes.c_void_p()
    seconds, taken = [], []
    try:
        cuda, nccl = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libnccl.so.2")
        call(cuda, "cuInit", 0)
        call(cuda, "cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        call(cuda, "cuCtxSetCurrent", context)
        for _ in range(int(sys.argv[1])):
            free, begin = free_bytes(cuda), time.perf_counter()
            make(nccl)
            seconds.append(time.perf_counter() - begin)
            taken.append(free - free_bytes(cuda))
    except (OSError, RuntimeError) as error:
        sys.exit(f"error: {error}")
    print(json.dumps({"seconds": seconds, "bytes": taken}))


if __name__ == "__main__":
    main()
