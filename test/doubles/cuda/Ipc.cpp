//===- Ipc.cpp - Memory and events between processes ----------------------===//
//
// As with a real driver: what a process exports it cannot open itself, a handle
// is of a whole allocation, memory that a context opens twice is the same, and
// only cuIpcCloseMemHandle gives it back. A handle of what is gone is refused.
//
//===----------------------------------------------------------------------===//

#include "test/doubles/cuda/Ipc.h"

#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace pipewright::doubles;

static constexpr uint64_t pageBytes = 4096;
/// Of the file, which takes memory only where it was written.
static constexpr int64_t fileBytes = int64_t{1} << 45;

namespace {

/// The page in front of an object.
struct Header {
  SharedKind kind = SharedKind::Memory;
  uint32_t isLive = 0;
  /// No other object of any process is likely to have it.
  uint64_t number = 0;
  uint64_t bytes = 0;
  int32_t device = 0;
};

/// What the 64 bytes of a handle are.
struct Handle {
  char magic[8];
  int32_t process;
  int32_t file;
  /// Of the header.
  int64_t place;
  uint64_t number;
};
static_assert(sizeof(Handle) <= CU_IPC_HANDLE_SIZE);

struct SharedFile {
  int file = -1;
  std::mutex mutex;
  int64_t end = 0;
  uint64_t number = 0;

  SharedFile() {
    file = memfd_create("pipewright-gpu", MFD_CLOEXEC);
    // Larger files may not be allowed.
    if (file >= 0 && ftruncate(file, fileBytes)) {
      close(file);
      file = -1;
    }
    std::random_device random;
    number = uint64_t{random()} << 32 | random();
  }
};

/// Memory of another process's, by which it is found again.
struct Opened {
  std::map<std::pair<Context *, uint64_t>, std::shared_ptr<Allocation>> all;
};

} // namespace

/// Never closed, as threads of streams may still run when the process ends. The
/// child of a fork has none: what it adds would lie where its parent's does.
static SharedFile &sharedFile() {
  static SharedFile *all = [] {
    pthread_atfork(nullptr, nullptr, [] { sharedFile().file = -1; });
    return new SharedFile;
  }();
  return *all;
}

static Opened &opened() {
  static Opened *all = new Opened;
  return *all;
}

static uint32_t self() { return static_cast<uint32_t>(getpid()); }

static int64_t pagesOf(uint64_t bytes) {
  return static_cast<int64_t>((bytes + pageBytes - 1) / pageBytes * pageBytes);
}

//===----------------------------------------------------------------------===//
// Objects of this process
//===----------------------------------------------------------------------===//

int64_t pipewright::doubles::addShared(SharedKind kind, uint64_t bytes,
                                       int device) {
  SharedFile &shared = sharedFile();
  if (shared.file < 0)
    return -1;
  std::lock_guard<std::mutex> lock(shared.mutex);
  const int64_t place = shared.end;
  const Header header = {kind, 1, ++shared.number, bytes, device};
  if (pagesOf(bytes) > fileBytes - place - static_cast<int64_t>(pageBytes) ||
      pwrite(shared.file, &header, sizeof header, place) != sizeof header)
    return -1;
  shared.end += static_cast<int64_t>(pageBytes) + pagesOf(bytes);
  return place;
}

void *pipewright::doubles::mapShared(int64_t place, uint64_t bytes, void *at) {
  void *mapped = mmap(at, pagesOf(bytes), PROT_READ | PROT_WRITE,
                      MAP_SHARED | (at ? MAP_FIXED : 0), sharedFile().file,
                      place + static_cast<int64_t>(pageBytes));
  return mapped == MAP_FAILED ? nullptr : mapped;
}

void pipewright::doubles::endShared(int64_t place) {
  const uint32_t isLive = 0;
  [[maybe_unused]] const ssize_t written =
      pwrite(sharedFile().file, &isLive, sizeof isLive,
             place + static_cast<int64_t>(offsetof(Header, isLive)));
}

void pipewright::doubles::dropShared(int64_t place, uint64_t bytes) {
  fallocate(sharedFile().file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            place + static_cast<int64_t>(pageBytes), pagesOf(bytes));
}

/// The 64 bytes by which others find it.
static CUresult makeHandle(int64_t place, const char *magic, void *bytes) {
  if (place < 0 || !state().settings.ipc)
    return CUDA_ERROR_NOT_SUPPORTED;
  Header header;
  if (pread(sharedFile().file, &header, sizeof header, place) != sizeof header)
    return CUDA_ERROR_UNKNOWN;
  Handle handle = {};
  std::memcpy(handle.magic, magic, sizeof handle.magic);
  handle.process = getpid();
  handle.file = sharedFile().file;
  handle.place = place;
  handle.number = header.number;
  std::memset(bytes, 0, CU_IPC_HANDLE_SIZE);
  std::memcpy(bytes, &handle, sizeof handle);
  return CUDA_SUCCESS;
}

static constexpr char memoryMagic[9] = "PWMEMORY", eventMagic[9] = "PWEVENTS";

//===----------------------------------------------------------------------===//
// Objects of others
//===----------------------------------------------------------------------===//

namespace {
/// One that a handle names, and the file that it is in.
struct Found {
  Handle handle = {};
  Header header;
  int file = -1;

  ~Found() {
    if (file >= 0)
      close(file);
  }
  CUresult find(const void *bytes, const char *magic, SharedKind kind);
  void *map(void *at) const {
    void *mapped = mmap(at, pagesOf(header.bytes), PROT_READ | PROT_WRITE,
                        MAP_SHARED | (at ? MAP_FIXED : 0), file,
                        handle.place + static_cast<int64_t>(pageBytes));
    return mapped == MAP_FAILED ? nullptr : mapped;
  }
};
} // namespace

CUresult Found::find(const void *bytes, const char *magic, SharedKind kind) {
  std::memcpy(&handle, bytes, sizeof handle);
  if (std::memcmp(handle.magic, magic, sizeof handle.magic) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (handle.process == getpid())
    return CUDA_ERROR_INVALID_CONTEXT;
  char name[64];
  std::snprintf(name, sizeof name, "/proc/%d/fd/%d", handle.process,
                handle.file);
  file = open(name, O_RDWR | O_CLOEXEC);
  if (file < 0 ||
      pread(file, &header, sizeof header, handle.place) != sizeof header ||
      header.kind != kind || header.number != handle.number || !header.isLive)
    return CUDA_ERROR_INVALID_HANDLE;
  return CUDA_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

CUresult CUDAAPI cuIpcGetMemHandle(CUipcMemHandle *handle,
                                   CUdeviceptr address) {
  Context *context = nullptr;
  if (CUresult result = enter(context))
    return result;
  const std::shared_ptr<Allocation> found = findAllocation(address);
  if (!handle || !found || found->device < 0 || found->opened)
    return CUDA_ERROR_INVALID_VALUE;
  return makeHandle(found->place, memoryMagic, handle->reserved);
}

/// Behind addresses that nothing else has, with pages around it that nobody may
/// touch.
static std::shared_ptr<Allocation> mapOpened(const Found &found, int device) {
  const uint64_t whole = pagesOf(found.header.bytes) + 2 * pageBytes;
  void *pages = mmap(nullptr, whole, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED)
    return nullptr;
  char *begin = static_cast<char *>(pages) + pageBytes;
  std::shared_ptr<Allocation> allocation(new Allocation,
                                         [pages, whole](Allocation *each) {
                                           munmap(pages, whole);
                                           delete each;
                                         });
  if (!found.map(begin))
    return nullptr;
  allocation->host = begin;
  allocation->begin = reinterpret_cast<uint64_t>(begin) | deviceBit;
  allocation->bytes = found.header.bytes;
  allocation->device = device;
  allocation->opened = 1;
  return allocation;
}

CUresult CUDAAPI cuIpcOpenMemHandle(CUdeviceptr *address, CUipcMemHandle handle,
                                    unsigned flags) {
  Context *context = nullptr;
  if (CUresult result = enterOutsideCapture(context))
    return result;
  if (!address || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
    return CUDA_ERROR_INVALID_VALUE;
  if (!state().settings.ipc)
    return CUDA_ERROR_NOT_SUPPORTED;
  mayWaitForGpu(context);
  Found found;
  if (CUresult result =
          found.find(handle.reserved, memoryMagic, SharedKind::Memory))
    return result;
  const int own = context->device->ordinal;
  if (found.header.device != own && !state().settings.peers)
    return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  std::lock_guard<std::mutex> lock(state().mutex);
  std::shared_ptr<Allocation> &known =
      opened().all[{context, found.header.number}];
  if (known) {
    ++known->opened;
  } else {
    known = mapOpened(found, own);
    if (!known) {
      opened().all.erase({context, found.header.number});
      return CUDA_ERROR_MAP_FAILED;
    }
    insert(known);
  }
  *address = known->begin;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuIpcCloseMemHandle(CUdeviceptr address) {
  Context *context = nullptr;
  if (CUresult result = enterOutsideCapture(context))
    return result;
  mayWaitForGpu(context);
  State &everything = state();
  std::lock_guard<std::mutex> lock(everything.mutex);
  auto &all = opened().all;
  const auto entry =
      std::find_if(all.begin(), all.end(), [&](const auto &each) {
        return each.first.first == context && each.second->begin == address;
      });
  if (entry == all.end())
    return CUDA_ERROR_INVALID_VALUE;
  if (--entry->second->opened > 0)
    return CUDA_SUCCESS;
  std::unique_lock<std::shared_mutex> memory(everything.memoryMutex);
  if (everything.pendingWork > 0)
    everything.quarantine.push_back(entry->second);
  everything.allocations.erase(address);
  all.erase(entry);
  return CUDA_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

namespace {

/// One of an event between processes.
class SharedRecord final : public Record {
public:
  SharedRecord(std::shared_ptr<SharedEvent> event, uint64_t number)
      : event(std::move(event)), number(number) {}

  void finish(const VectorClock &clock) override;
  void waitUntilDone() override {
    for (Naps naps; !isDone();)
      naps.next();
  }
  bool isDone() override { return slot().over >= number; }
  VectorClock clock() override;
  std::chrono::steady_clock::time_point time() override { return {}; }

private:
  SharedEvent::Slot &slot() const { return event->slotOf(number); }

  const std::shared_ptr<SharedEvent> event;
  const uint64_t number;
};

} // namespace

void SharedRecord::finish(const VectorClock &clock) {
  for (Naps naps; slot().over + SharedEvent::slotCount < number;)
    naps.next();
  if (state().settings.races) {
    const std::vector<VectorClock::Tick> ticks = clock.all(self());
    if (ticks.size() > SharedClock::most)
      note("a clock of " + std::to_string(ticks.size()) +
           " streams is too large for an event between processes");
    slot().clock.count = static_cast<uint32_t>(
        std::min<size_t>(ticks.size(), SharedClock::most));
    std::copy_n(ticks.begin(), slot().clock.count, slot().clock.ticks);
  }
  slot().over = number;
}

VectorClock SharedRecord::clock() {
  VectorClock known;
  const SharedClock &from = slot().clock;
  for (uint32_t i = 0; i < std::min(from.count, SharedClock::most); ++i)
    known.join(from.ticks[i], self());
  return known;
}

std::shared_ptr<Record>
pipewright::doubles::lastOfShared(const std::shared_ptr<SharedEvent> &event) {
  const uint64_t last = event->issued;
  return last ? std::make_shared<SharedRecord>(event, last) : nullptr;
}

std::shared_ptr<Record>
pipewright::doubles::recordShared(const std::shared_ptr<SharedEvent> &event) {
  return std::make_shared<SharedRecord>(event, ++event->issued);
}

std::shared_ptr<SharedEvent>
pipewright::doubles::makeSharedEvent(int device, int64_t &place) {
  place = addShared(SharedKind::Event, sizeof(SharedEvent), device);
  void *memory =
      place < 0 ? nullptr : mapShared(place, sizeof(SharedEvent), nullptr);
  if (!memory)
    return nullptr;
  return {new (memory) SharedEvent, [place](SharedEvent *event) {
            munmap(event, pagesOf(sizeof *event));
            dropShared(place, sizeof *event);
          }};
}

CUresult CUDAAPI cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event) {
  if (CUresult result = enterWithoutContext())
    return result;
  std::lock_guard<std::mutex> lock(state().mutex);
  const auto *found = reinterpret_cast<const Event *>(event);
  if (!isLive(found) || found->place < 0)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!handle)
    return CUDA_ERROR_INVALID_VALUE;
  return makeHandle(found->place, eventMagic, handle->reserved);
}

CUresult CUDAAPI cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle) {
  Context *context = nullptr;
  if (CUresult result = enterOutsideCapture(context))
    return result;
  if (!event)
    return CUDA_ERROR_INVALID_VALUE;
  if (!state().settings.ipc)
    return CUDA_ERROR_NOT_SUPPORTED;
  Found found;
  if (CUresult result =
          found.find(handle.reserved, eventMagic, SharedKind::Event))
    return result;
  if (found.header.device != context->device->ordinal &&
      !state().settings.peers)
    return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  void *memory = found.map(nullptr);
  if (!memory)
    return CUDA_ERROR_MAP_FAILED;
  std::lock_guard<std::mutex> lock(state().mutex);
  Event *opened = new Event;
  opened->context = context;
  opened->timed = false;
  opened->shared = {static_cast<SharedEvent *>(memory), [](SharedEvent *each) {
                      munmap(each, pagesOf(sizeof *each));
                    }};
  state().handles.insert(opened);
  *event = reinterpret_cast<CUevent>(opened);
  return CUDA_SUCCESS;
}
