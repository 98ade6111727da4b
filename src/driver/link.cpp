// Object and archive go to a scratch folder, `cc` links them. Executables need libc, libm and the loader alone: no C++ library, and
// libgcc's few helpers are linked statically.
#include "driver/link.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

extern "C" const char bendrt_archive_begin[], bendrt_archive_end[];
extern char** environ;

namespace bendc {

namespace {

class ScratchFolder {
 public:
  ScratchFolder() {
    const char* base = std::getenv("TMPDIR");
    path_ = fmt::format("{}/bendc-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(path_.data())) error_ = std::strerror(errno);
  }
  ~ScratchFolder() {
    if (!error_.empty()) return;
    for (const std::string& file : files_) unlink(file.c_str());
    rmdir(path_.c_str());
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::string write(const char* name, std::string_view bytes) {
    std::string path = path_ + "/" + name;
    const int file = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (file < 0) return fail();
    files_.push_back(path);
    while (!bytes.empty()) {
      const ssize_t count = ::write(file, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        fail();
        break;
      }
      bytes.remove_prefix(static_cast<size_t>(count));
    }
    close(file);
    return path;
  }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  std::string fail() {
    write_error_ = true;
    error_text_ = std::strerror(errno);
    return {};
  }

 public:
  [[nodiscard]] bool write_failed() const { return write_error_; }
  [[nodiscard]] const std::string& write_error() const { return error_text_; }

 private:
  std::string path_, error_, error_text_;
  bool write_error_ = false;
  std::vector<std::string> files_;
};

struct Ran {
  int spawn_error = 0;
  int status = 0;
  std::string output;      // stdout and stderr
};

Ran run_tool(const std::vector<std::string>& words) {
  Ran out;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    out.spawn_error = errno;
    return out;
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  out.spawn_error = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (out.spawn_error == 0) {
    char buffer[4096];
    for (ssize_t count; (count = read(ends[0], buffer, sizeof buffer)) != 0;) {
      if (count > 0) out.output.append(buffer, static_cast<size_t>(count));
      else if (errno != EINTR) break;
    }
    while (waitpid(child, &out.status, 0) < 0 && errno == EINTR) {}
  }
  close(ends[0]);
  return out;
}

}  // namespace

LinkResult link_executable(std::string_view object, const std::string& path) {
  ScratchFolder folder;
  if (!folder.error().empty()) return {false, fmt::format("cannot make a scratch folder `{}`: {}", folder.path(), folder.error()), ""};
  const std::string program = folder.write("program.o", object);
  const std::string archive = folder.write("libbendrt.a", {bendrt_archive_begin, static_cast<size_t>(bendrt_archive_end - bendrt_archive_begin)});
  if (folder.write_failed()) return {false, fmt::format("cannot write to `{}`: {}", folder.path(), folder.write_error()), ""};
  const char* chosen = std::getenv("CC");
  const std::string compiler = chosen && *chosen ? chosen : "cc";
  const Ran ran = run_tool({compiler, "-o", path, program, archive, "-static-libgcc", "-pthread", "-ldl", "-lm"});
  if (ran.spawn_error != 0)
    return {false, fmt::format("cannot start `{}`, which links executables: {}; install a C compiler, or name one in CC", compiler, std::strerror(ran.spawn_error)), ""};
  if (WIFEXITED(ran.status) && WEXITSTATUS(ran.status) == 0) return {true, "", ran.output};
  return {false, fmt::format("`{}` cannot link `{}`", compiler, path), ran.output};
}

}  // namespace bendc
