#include "driver/scratch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace bendc {

ScratchFolder::ScratchFolder() {
  sigset_t waiting;
  sigemptyset(&waiting);
  for (const int signal : kEndingSignals) sigaddset(&waiting, signal);
  pthread_sigmask(SIG_BLOCK, &waiting, &before_);
  const char* base = std::getenv("TMPDIR");
  path_ = fmt::format("{}/bendc-XXXXXX", base && *base ? base : "/tmp");
  made_ = mkdtemp(path_.data()) != nullptr;
  if (!made_) error_ = fmt::format("cannot make a scratch folder `{}`: {}", path_, std::strerror(errno));
}

ScratchFolder::~ScratchFolder() {
  if (made_) {
    for (const std::string& file : files_) unlink(file.c_str());
    rmdir(path_.c_str());
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::string ScratchFolder::file(std::string_view name) {
  files_.push_back(fmt::format("{}/{}", path_, name));
  return files_.back();
}

std::string ScratchFolder::write(std::string_view name, std::string_view bytes) {
  std::string path = file(name);
  const int out = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  bool failed = out < 0;
  while (!failed && !bytes.empty()) {
    const ssize_t count = ::write(out, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    failed = count < 0;
    if (!failed) bytes.remove_prefix(static_cast<size_t>(count));
  }
  if (failed && error_.empty()) error_ = fmt::format("cannot write to `{}`: {}", path, std::strerror(errno));
  if (out >= 0) close(out);
  return path;
}

bool ScratchFolder::read(const std::string& path, std::string& bytes) {
  const int in = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  bool failed = in < 0;
  char buffer[1 << 16];
  while (!failed) {
    const ssize_t count = ::read(in, buffer, sizeof buffer);
    if (count == 0) break;
    if (count < 0 && errno == EINTR) continue;
    failed = count < 0;
    if (!failed) bytes.append(buffer, static_cast<size_t>(count));
  }
  if (failed && error_.empty()) error_ = fmt::format("cannot read `{}`: {}", path, std::strerror(errno));
  if (in >= 0) close(in);
  return !failed;
}

}  // namespace bendc
