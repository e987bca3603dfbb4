//===- InputsAhead.cpp - Inputs of the next step, on the GPU --------------===//

#include "runtime/cuda/InputsAhead.h"

using namespace pipewright::runtime;

InputsAhead::~InputsAhead() {
  const Driver &driver = cudaDriver();
  for (const Place &place : places) {
    driver.cuEventDestroy(place.sent);
    driver.cuEventDestroy(place.taken);
  }
  if (copying)
    driver.cuStreamDestroy(copying);
}

void InputsAhead::reserve(const Device &device, int64_t bytes) {
  if (!bytes)
    return;
  memory = DeviceMemory(device, bytes, "inputs of the next step");
  PIPEWRIGHT_CUDA(cuStreamCreate(&copying, CU_STREAM_NON_BLOCKING));
}

int64_t InputsAhead::placeOf(const Staging::Piece &piece) {
  for (size_t i = 0; i < places.size(); ++i)
    if (places[i].input == piece.input &&
        places[i].microBatch == piece.microBatch &&
        places[i].bytes == piece.bytes)
      return i;
  if (used + piece.bytes > memory.bytes())
    return -1;
  Place place{piece.input, piece.microBatch, piece.bytes, used};
  used += Staging::padded(piece.bytes);
  PIPEWRIGHT_CUDA(cuEventCreate(&place.sent, CU_EVENT_DISABLE_TIMING));
  PIPEWRIGHT_CUDA(cuEventCreate(&place.taken, CU_EVENT_DISABLE_TIMING));
  places.push_back(place);
  return places.size() - 1;
}

void InputsAhead::send(Staging &next, Chaos &chaos) {
  for (Staging::Piece &piece : next.pieces()) {
    if (piece.bytes < leastBytes)
      continue;
    piece.place = placeOf(piece);
    if (piece.place < 0)
      continue;
    const Place &place = places[piece.place];
    PIPEWRIGHT_CUDA(cuStreamWaitEvent(copying, place.taken, 0));
    chaos.strike(copying);
    PIPEWRIGHT_CUDA(cuMemcpyHtoDAsync(memory.address() + place.begin,
                                      piece.data, piece.bytes, copying));
    PIPEWRIGHT_CUDA(cuEventRecord(place.sent, copying));
  }
}

bool InputsAhead::take(const Staging::Piece &piece, CUdeviceptr destination,
                       CUstream stream) {
  if (piece.place < 0)
    return false;
  const Place &place = places[piece.place];
  PIPEWRIGHT_CUDA(cuStreamWaitEvent(stream, place.sent, 0));
  PIPEWRIGHT_CUDA(cuMemcpyDtoDAsync(destination, memory.address() + place.begin,
                                    piece.bytes, stream));
  PIPEWRIGHT_CUDA(cuEventRecord(place.taken, stream));
  return true;
}
