//===- ReservedWords.h - Names that mean something already ------*- C++ -*-===//
//
// What a lower-case identifier of generated code must not be: keywords and
// alternative tokens of C and C++ up to C++26, words that are keywords in some
// places, and macros that the headers of C and of systems define. A test reads
// the macros of the runtime's headers from the compiler and finds each here.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_SUPPORT_RESERVEDWORDS_H
#define PIPEWRIGHT_SUPPORT_RESERVEDWORDS_H

#include "llvm/ADT/StringRef.h"

namespace pipewright::text {

inline constexpr llvm::StringLiteral reservedWords[] = {
    // Keywords.
    "alignas", "alignof", "asm", "atomic_cancel", "atomic_commit",
    "atomic_noexcept", "auto", "bool", "break", "case", "catch", "char",
    "char8_t", "char16_t", "char32_t", "class", "co_await", "co_return",
    "co_yield", "complex", "concept", "const", "const_cast", "consteval",
    "constexpr", "constinit", "continue", "contract_assert", "decltype",
    "default", "delete", "do", "double", "dynamic_cast", "else", "enum",
    "explicit", "export", "extern", "false", "final", "float", "for", "friend",
    "goto", "if", "imaginary", "import", "inline", "int", "long", "module",
    "mutable", "namespace", "new", "noexcept", "noreturn", "nullptr",
    "operator", "override", "private", "protected", "public", "reflexpr",
    "register", "reinterpret_cast", "replaceable_if_eligible", "requires",
    "restrict", "return", "short", "signed", "sizeof", "static",
    "static_assert", "static_cast", "struct", "switch", "synchronized",
    "template", "this", "thread_local", "throw",
    "trivially_relocatable_if_eligible", "true", "try", "typedef", "typeid",
    "typename", "typeof", "typeof_unqual", "union", "unsigned", "using",
    "virtual", "void", "volatile", "wchar_t", "while",
    // Alternative tokens.
    "and", "and_eq", "bitand", "bitor", "compl", "not", "not_eq", "or", "or_eq",
    "xor", "xor_eq",
    // Types that code is written with everywhere.
    "int8_t", "int16_t", "int32_t", "int64_t", "intmax_t", "intptr_t",
    "max_align_t", "nullptr_t", "ptrdiff_t", "size_t", "ssize_t", "std",
    "uint8_t", "uint16_t", "uint32_t", "uint64_t", "uintmax_t", "uintptr_t",
    // Macros of C's headers.
    "alloca", "assert", "errno", "fpclassify", "iscanonical", "iseqsig",
    "isfinite", "isgreater", "isgreaterequal", "isinf", "isless", "islessequal",
    "islessgreater", "isnan", "isnormal", "issignaling", "issubnormal",
    "isunordered", "iszero", "kill_dependency", "math_errhandling", "offsetof",
    "setjmp", "signbit", "stderr", "stdin", "stdout", "unreachable", "va_arg",
    "va_copy", "va_end", "va_start",
    // Macros of systems' headers, and words that compilers define.
    "arm", "be16toh", "be32toh", "be64toh", "bcopy", "bzero", "d_fileno",
    "environ", "h_addr", "h_errno", "htobe16", "htobe32", "htobe64", "htole16",
    "htole32", "htole64", "i386", "le16toh", "le32toh", "le64toh", "linux",
    "major", "makedev", "minor", "mips", "powerpc", "pthread_cleanup_pop",
    "pthread_cleanup_pop_restore_np", "pthread_cleanup_push",
    "pthread_cleanup_push_defer_np", "sa_handler", "sa_sigaction",
    "sched_priority", "si_addr", "si_band", "si_fd", "si_int", "si_overrun",
    "si_pid", "si_ptr", "si_status", "si_stime", "si_timerid", "si_uid",
    "si_utime", "si_value", "sigev_notify_attributes", "sigev_notify_function",
    "sparc", "st_atime", "st_ctime", "st_mtime", "sun", "unix", "w_coredump",
    "w_retcode", "w_stopsig", "w_stopval", "w_termsig"};

} // namespace pipewright::text

#endif // PIPEWRIGHT_SUPPORT_RESERVEDWORDS_H
