#include "runtime/output.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "runtime/message.h"
#include "support/text.h"

namespace bendc::rt {

namespace {

[[noreturn]] void die_of_pipe() {
  signal(SIGPIPE, SIG_DFL);
  sigset_t pipe_only;
  sigemptyset(&pipe_only);
  sigaddset(&pipe_only, SIGPIPE);
  sigprocmask(SIG_UNBLOCK, &pipe_only, nullptr);
  kill(getpid(), SIGPIPE);
  _exit(128 + SIGPIPE);
}

// All of the bytes, or the errno of the failure.
int write_all(int fd, const char* bytes, size_t size) {
  while (size > 0) {
    ssize_t n = write(fd, bytes, size);
    if (n >= 0) {
      bytes += n;
      size -= static_cast<size_t>(n);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      pollfd wait = {fd, POLLOUT, 0};
      poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace

size_t encode_char(uint32_t c, char* out) {
  if (c >= 0xD800 && c <= 0xDFFF) {
    out[0] = static_cast<char>(0xE0 | (c >> 12));
    out[1] = static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out[2] = static_cast<char>(0x80 | (c & 0x3F));
    return 3;
  }
  if (c > 0x10FFFF && c <= 0x1FFFFF) {
    out[0] = static_cast<char>(0xF0 | (c >> 18));
    out[1] = static_cast<char>(0x80 | ((c >> 12) & 0x3F));
    out[2] = static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out[3] = static_cast<char>(0x80 | (c & 0x3F));
    return 4;
  }
  return text::utf8_encode(c, out);
}

void output_open(Output* out, int fd) {
  out->fd = fd;
  out->used = 0;
  out->by_line = isatty(fd) == 1;
}

void output_flush(Output* out) {
  if (out->used == 0) return;
  size_t size = out->used;
  out->used = 0;
  int error = write_all(out->fd, out->buffer, size);
  if (error == 0) return;
  if (error == EPIPE) die_of_pipe();
  Message m;
  m.text("bend: a short write on a standard stream: ").text(strerror(error)).text("\n");
  write_stderr(m.data(), m.size());
  _exit(1);
}

void output_bytes(Output* out, const char* bytes, size_t size) {
  bool line = out->by_line && memchr(bytes, '\n', size) != nullptr;
  while (size > 0) {
    size_t room = Output::kCapacity - out->used;
    size_t n = size < room ? size : room;
    memcpy(out->buffer + out->used, bytes, n);
    out->used += n;
    bytes += n;
    size -= n;
    if (out->used == Output::kCapacity) output_flush(out);
  }
  if (line) output_flush(out);
}

void output_char(Output* out, uint32_t code_point) {
  if (Output::kCapacity - out->used < 4) output_flush(out);
  out->used += encode_char(code_point, out->buffer + out->used);
  if (code_point == '\n' && out->by_line) output_flush(out);
}

void write_stderr(const char* bytes, size_t size) {
  if (write_all(STDERR_FILENO, bytes, size) == EPIPE) die_of_pipe();
}

}  // namespace bendc::rt
