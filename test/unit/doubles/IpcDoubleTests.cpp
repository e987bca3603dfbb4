//===- IpcDoubleTests.cpp - Memory and events between processes -----------===//
//
// The double of the driver in two processes, which fork before either has
// started it: one exports, on GPU 0, the other opens, on GPU 1 unless it says
// otherwise. They talk over a pair of sockets.
//
//===----------------------------------------------------------------------===//

#include "test/conformance/libraries/DriverTest.h"

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace pipewright::runtime;

namespace {

/// One of the two processes.
class Side {
public:
  Side(int socket, int gpu) : socket(socket) {
    call(driver().cuDevicePrimaryCtxRetain(&context, gpu), "a context");
    call(driver().cuCtxSetCurrent(context), "to make it current");
    call(driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "a stream");
  }

  static void expect(bool holds, const std::string &what) {
    if (!holds)
      throw std::runtime_error(what);
  }
  static void call(CUresult result, const std::string &what) {
    expectResult(result, CUDA_SUCCESS, what);
  }
  static void expectResult(CUresult result, CUresult expected,
                           const std::string &what) {
    expect(result == expected, what + ": " + std::to_string(result) + ", not " +
                                   std::to_string(expected));
  }

  template <class T>
  void give(const T &value) {
    expect(write(socket, &value, sizeof value) == sizeof value, "a write");
  }
  template <class T>
  T take() {
    T value;
    expect(recv(socket, &value, sizeof value, MSG_WAITALL) == sizeof value,
           "the other process has ended");
    return value;
  }
  /// Both have come so far.
  void meet() {
    give('m');
    take<char>();
  }

  CUdeviceptr allocate(const std::vector<float> &values) {
    CUdeviceptr address = 0;
    call(driver().cuMemAlloc(&address, values.size() * 4), "cuMemAlloc");
    call(driver().cuMemcpyHtoD(address, values.data(), values.size() * 4),
         "cuMemcpyHtoD");
    return address;
  }
  float read(CUdeviceptr address) {
    float value = 0;
    call(driver().cuMemcpyDtoH(&value, address, 4), "cuMemcpyDtoH");
    return value;
  }
  CUevent event() {
    CUevent made = nullptr;
    call(driver().cuEventCreate(&made, CU_EVENT_INTERPROCESS |
                                           CU_EVENT_DISABLE_TIMING),
         "cuEventCreate");
    return made;
  }
  CUipcMemHandle handleOf(CUdeviceptr address) {
    CUipcMemHandle handle;
    call(driver().cuIpcGetMemHandle(&handle, address), "cuIpcGetMemHandle");
    return handle;
  }
  CUipcEventHandle handleOf(CUevent made) {
    CUipcEventHandle handle;
    call(driver().cuIpcGetEventHandle(&handle, made), "cuIpcGetEventHandle");
    return handle;
  }
  CUdeviceptr open(const CUipcMemHandle &handle) {
    CUdeviceptr address = 0;
    call(tryToOpen(address, handle), "cuIpcOpenMemHandle");
    return address;
  }
  static CUresult
  tryToOpen(CUdeviceptr &address, const CUipcMemHandle &handle,
            unsigned flags = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) {
    return driver().cuIpcOpenMemHandle(&address, handle, flags);
  }
  CUevent open(const CUipcEventHandle &handle) {
    CUevent opened = nullptr;
    call(driver().cuIpcOpenEventHandle(&opened, handle),
         "cuIpcOpenEventHandle");
    return opened;
  }

  CUcontext context = nullptr;
  CUstream stream = nullptr;

private:
  int socket;
};

using Body = std::function<void(Side &)>;

/// Holds a stream up until it is opened.
struct Gate {
  std::atomic<bool> open{false};
  static void CUDA_CB wait(void *gate) {
    while (!static_cast<Gate *>(gate)->open)
      std::this_thread::yield();
  }
};

} // namespace

/// 0 unless the body throws, which is said.
static int runSide(int socket, int gpu, const Body &body) {
  try {
    Side side(socket, gpu);
    body(side);
    return 0;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "on GPU %d: %s\n", gpu, error.what());
    return 1;
  }
}

static void runBoth(const Body &exporter, const Body &opener,
                    int gpuOfOpener = 1) {
  setenv("PIPEWRIGHT_DOUBLE_GPUS", "2", 1);
  setenv("PIPEWRIGHT_DOUBLE_RACES", "1", 1);
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
  pid_t children[2];
  for (int i = 0; i < 2; ++i) {
    children[i] = fork();
    if (children[i] == 0) {
      close(sockets[1 - i]);
      _exit(runSide(sockets[i], i ? gpuOfOpener : 0, i ? opener : exporter));
    }
  }
  close(sockets[0]);
  close(sockets[1]);
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

TEST(IpcDouble, AnotherProcessReadsAndWrites) {
  for (const int gpu : {0, 1})
    runBoth(
        [](Side &s) {
          const CUdeviceptr memory = s.allocate({1, 2, 3});
          const CUevent ready = s.event();
          Side::call(driver().cuEventRecord(ready, s.stream), "cuEventRecord");
          s.give(s.handleOf(memory));
          s.give(s.handleOf(ready));
          const CUevent written = s.open(s.take<CUipcEventHandle>());
          // The other has recorded it by now.
          Side::call(driver().cuEventSynchronize(written),
                     "cuEventSynchronize");
          Side::expect(s.read(memory + 4) == 7, "the value is there");
          s.meet();
        },
        [](Side &s) {
          const CUdeviceptr memory = s.open(s.take<CUipcMemHandle>());
          const CUevent ready = s.open(s.take<CUipcEventHandle>());
          const CUdeviceptr own = s.allocate({7});
          const CUevent written = s.event();
          Side::call(driver().cuStreamWaitEvent(s.stream, ready, 0),
                     "cuStreamWaitEvent");
          Side::call(driver().cuMemcpyDtoDAsync(own + 0, own, 4, s.stream),
                     "cuMemcpyDtoDAsync");
          Side::call(driver().cuMemcpyDtoDAsync(memory + 4, own, 4, s.stream),
                     "cuMemcpyDtoDAsync");
          Side::call(driver().cuEventRecord(written, s.stream),
                     "cuEventRecord");
          Side::expect(s.read(memory + 8) == 3, "what was there is read");
          s.give(s.handleOf(written));
          s.meet();
          Side::call(driver().cuIpcCloseMemHandle(memory),
                     "cuIpcCloseMemHandle");
        },
        gpu);
}

TEST(IpcDouble, AHandleIsOfAWholeAllocation) {
  runBoth(
      [](Side &s) {
        const CUdeviceptr memory = s.allocate({1, 2, 3});
        s.give(s.handleOf(memory));
        s.give(s.handleOf(memory + 8));
        s.meet();
      },
      [](Side &s) {
        const CUdeviceptr memory = s.open(s.take<CUipcMemHandle>());
        Side::expect(s.open(s.take<CUipcMemHandle>()) == memory,
                     "what is open already is the same");
        Side::expect(s.read(memory) == 1, "it begins at the allocation");
        CUdeviceptr begin = 0;
        size_t bytes = 0;
        Side::call(driver().cuMemGetAddressRange(&begin, &bytes, memory),
                   "cuMemGetAddressRange");
        Side::expect(begin == memory && bytes == 12, "it is all of it");
        Side::expectResult(driver().cuMemFree(memory), CUDA_ERROR_INVALID_VALUE,
                           "it is not to be freed here");
        CUipcMemHandle again;
        Side::expectResult(driver().cuIpcGetMemHandle(&again, memory),
                           CUDA_ERROR_INVALID_VALUE, "nor to be handed on");
        // As often as it was opened.
        Side::call(driver().cuIpcCloseMemHandle(memory), "cuIpcCloseMemHandle");
        Side::expect(s.read(memory) == 1, "it is still open");
        Side::call(driver().cuIpcCloseMemHandle(memory), "cuIpcCloseMemHandle");
        Side::expectResult(driver().cuIpcCloseMemHandle(memory),
                           CUDA_ERROR_INVALID_VALUE, "it is closed");
        float value = 0;
        Side::expectResult(driver().cuMemcpyDtoH(&value, memory, 4),
                           CUDA_ERROR_INVALID_VALUE, "and out of reach");
        s.meet();
      });
}

TEST(IpcDouble, AProcessOpensNothingOfItsOwn) {
  runBoth(
      [](Side &s) {
        CUdeviceptr opened = 0;
        Side::expectResult(Side::tryToOpen(opened, s.handleOf(s.allocate({1}))),
                           CUDA_ERROR_INVALID_CONTEXT, "memory");
        CUevent event = nullptr;
        Side::expectResult(
            driver().cuIpcOpenEventHandle(&event, s.handleOf(s.event())),
            CUDA_ERROR_INVALID_CONTEXT, "an event");
      },
      [](Side &) {});
}

TEST(IpcDouble, WrongHandlesAreRefused) {
  runBoth(
      [](Side &s) {
        const CUdeviceptr memory = s.allocate({1}), freed = s.allocate({1});
        const CUevent event = s.event(), destroyed = s.event();
        s.give(s.handleOf(memory));
        s.give(s.handleOf(freed));
        s.give(s.handleOf(event));
        s.give(s.handleOf(destroyed));
        Side::call(driver().cuMemFree(freed), "cuMemFree");
        Side::call(driver().cuEventDestroy(destroyed), "cuEventDestroy");
        s.meet();
        CUevent plain = nullptr;
        Side::call(driver().cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING),
                   "cuEventCreate");
        CUipcEventHandle handle;
        Side::expectResult(driver().cuIpcGetEventHandle(&handle, plain),
                           CUDA_ERROR_INVALID_HANDLE, "a plain event");
        Side::expectResult(
            driver().cuEventCreate(&plain, CU_EVENT_INTERPROCESS),
            CUDA_ERROR_INVALID_VALUE, "an event with times");
      },
      [](Side &s) {
        auto memory = s.take<CUipcMemHandle>();
        const auto freed = s.take<CUipcMemHandle>();
        auto event = s.take<CUipcEventHandle>();
        const auto destroyed = s.take<CUipcEventHandle>();
        s.meet();
        CUdeviceptr address = 0;
        CUevent opened = nullptr;
        Side::expectResult(Side::tryToOpen(address, memory, 0),
                           CUDA_ERROR_INVALID_VALUE, "flags");
        Side::expectResult(Side::tryToOpen(address, freed),
                           CUDA_ERROR_INVALID_HANDLE, "freed memory");
        Side::expectResult(driver().cuIpcOpenEventHandle(&opened, destroyed),
                           CUDA_ERROR_INVALID_HANDLE, "a destroyed event");
        CUipcMemHandle asMemory;
        std::copy_n(event.reserved, sizeof event, asMemory.reserved);
        Side::expectResult(Side::tryToOpen(address, asMemory),
                           CUDA_ERROR_INVALID_VALUE, "an event as memory");
        memory.reserved[30] ^= 1;
        Side::expectResult(Side::tryToOpen(address, memory),
                           CUDA_ERROR_INVALID_HANDLE, "a bit that differs");
        // Wait for the end of the other.
        try {
          s.take<char>();
        } catch (const std::exception &) {
        }
        Side::expectResult(driver().cuIpcOpenEventHandle(&opened, event),
                           CUDA_ERROR_INVALID_HANDLE, "one of the dead");
      });
}

TEST(IpcDouble, AWaitIsForTheLastRecordAtItsCall) {
  runBoth(
      [](Side &s) {
        const CUevent event = s.event();
        s.give(s.handleOf(event));
        s.meet();
        Gate gate;
        Side::call(driver().cuLaunchHostFunc(s.stream, Gate::wait, &gate),
                   "cuLaunchHostFunc");
        Side::call(driver().cuEventRecord(event, s.stream), "cuEventRecord");
        s.meet();
        s.meet();
        gate.open = true;
        s.meet();
      },
      [](Side &s) {
        const CUevent event = s.open(s.take<CUipcEventHandle>());
        Side::call(driver().cuStreamWaitEvent(s.stream, event, 0),
                   "cuStreamWaitEvent");
        Side::call(driver().cuStreamSynchronize(s.stream),
                   "cuStreamSynchronize");
        Side::call(driver().cuEventQuery(event), "cuEventQuery");
        s.meet();
        s.meet();
        Side::call(driver().cuStreamWaitEvent(s.stream, event, 0),
                   "cuStreamWaitEvent");
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        Side::expectResult(driver().cuStreamQuery(s.stream),
                           CUDA_ERROR_NOT_READY, "the stream waits");
        Side::expectResult(driver().cuEventQuery(event), CUDA_ERROR_NOT_READY,
                           "the event is not there");
        s.meet();
        Side::call(driver().cuStreamSynchronize(s.stream),
                   "cuStreamSynchronize");
        s.meet();
      });
}

/// What one process wrote before, and writes again after the other, is no race:
/// the order is known though it comes by the other process.
TEST(IpcDouble, OrderComesByTheOtherProcess) {
  runBoth(
      [](Side &s) {
        const CUdeviceptr memory = s.allocate({1});
        const CUevent event = s.event();
        CUstream other = nullptr;
        Side::call(driver().cuStreamCreate(&other, CU_STREAM_NON_BLOCKING),
                   "cuStreamCreate");
        Side::call(driver().cuMemsetD32Async(memory, 5, 1, s.stream),
                   "cuMemsetD32Async");
        Side::call(driver().cuEventRecord(event, s.stream), "cuEventRecord");
        s.give(s.handleOf(event));
        const CUevent answer = s.open(s.take<CUipcEventHandle>());
        Side::call(driver().cuStreamWaitEvent(other, answer, 0),
                   "cuStreamWaitEvent");
        Side::call(driver().cuMemsetD32Async(memory, 6, 1, other),
                   "cuMemsetD32Async");
        Side::call(driver().cuStreamSynchronize(other), "cuStreamSynchronize");
        s.meet();
      },
      [](Side &s) {
        const CUevent event = s.open(s.take<CUipcEventHandle>());
        const CUevent answer = s.event();
        Side::call(driver().cuStreamWaitEvent(s.stream, event, 0),
                   "cuStreamWaitEvent");
        Side::call(driver().cuEventRecord(answer, s.stream), "cuEventRecord");
        s.give(s.handleOf(answer));
        s.meet();
      });
}

TEST(IpcDouble, SomeMachinesHaveNone) {
  const Body exports = [](Side &s) {
    s.give(s.handleOf(s.allocate({1})));
    s.meet();
  };
  setenv("PIPEWRIGHT_DOUBLE_PEERS", "0", 1);
  runBoth(exports, [](Side &s) {
    CUdeviceptr address = 0;
    Side::expectResult(Side::tryToOpen(address, s.take<CUipcMemHandle>()),
                       CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "GPUs apart");
    s.meet();
  });
  unsetenv("PIPEWRIGHT_DOUBLE_PEERS");
  setenv("PIPEWRIGHT_DOUBLE_IPC", "0", 1);
  const Body refused = [](Side &s) {
    CUipcMemHandle handle;
    Side::expectResult(driver().cuIpcGetMemHandle(&handle, s.allocate({1})),
                       CUDA_ERROR_NOT_SUPPORTED, "a handle");
  };
  runBoth(refused, refused);
  unsetenv("PIPEWRIGHT_DOUBLE_IPC");
}
