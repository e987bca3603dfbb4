//===- TaskBody.h - What a task does ---------------------------*- C++ -*-===//
//
// Refers to a function for as long as a call takes. std::function would do, but
// costs compilers a dozen templates for each task of a generated program, which
// has thousands: files of ranks took four times as long to build.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_TASKBODY_H
#define PIPEWRIGHT_RUNTIME_CUDA_TASKBODY_H

namespace pipewright::runtime {

class TaskBody {
public:
  /// The function must outlive the call that takes this.
  template <typename Function>
  TaskBody(const Function &function)
      : function(&function), call(&callFunction<Function>) {}

  void operator()() const { call(function); }

private:
  template <typename Function>
  static void callFunction(const void *function) {
    (*static_cast<const Function *>(function))();
  }

  const void *function;
  void (*call)(const void *);
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_TASKBODY_H
