// The program's standard output: one buffer shared by IO.print, IO.write and the printer of value mains, written with write(2).
// A terminal gets every line at once; anything else gets full buffers, and the rest before the program waits, fails or ends.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace bendc::rt {

struct Output {
  static constexpr size_t kCapacity = 1u << 16;
  int fd;
  bool by_line;
  size_t used;
  char buffer[kCapacity];
};

void output_open(Output* out, int fd);
void output_bytes(Output* out, const char* bytes, size_t size);
// A code point as UTF-8. One that is no scalar is written as its bit pattern's encoding as far as four bytes hold it (2^21 - 1).
void output_char(Output* out, uint32_t code_point);
// Writes what is buffered. A closed pipe ends the process with SIGPIPE as any Unix filter; another failure ends it with exit status 1.
void output_flush(Output* out);
// Writes to stderr past all buffers.
void write_stderr(const char* bytes, size_t size);

// The encoding used by output_char; at most 4 bytes.
[[nodiscard]] size_t encode_char(uint32_t code_point, char* out);

}  // namespace bendc::rt
