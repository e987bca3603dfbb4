"""What the processor of this machine can do."""


def cpu_flags():
    try:
        with open("/proc/cpuinfo") as file:
            return next((line.split() for line in file if line.startswith("flags")), [])
    except OSError:
        return []


def cpu_has_bf16():
    """oneDNN multiplies bf16 on CPUs with AVX-512 alone; programs refuse others."""
    return {"avx512bw", "avx512vl", "avx512dq"} <= set(cpu_flags())
