#include "process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

extern char** environ;

namespace bendc::tests {
namespace {

using Clock = std::chrono::steady_clock;

struct Pipe {
  int read_end = -1, write_end = -1;

  bool open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    read_end = ends[0];
    write_end = ends[1];
    return true;
  }
  void close_write() { close_one(write_end); }
  ~Pipe() {
    close_one(read_end);
    close_one(write_end);
  }

 private:
  static void close_one(int& fd) {
    if (fd >= 0) close(fd);
    fd = -1;
  }
};

size_t resident_bytes(pid_t pid) {
  std::ifstream in(fmt::format("/proc/{}/statm", pid));
  size_t total = 0, resident = 0;
  in >> total >> resident;
  return resident * size_t(sysconf(_SC_PAGESIZE));
}

// Appends what is there; false at the end of the stream.
bool drain(int fd, std::string& into) {
  char buffer[65536];
  ssize_t got = read(fd, buffer, sizeof buffer);
  if (got > 0) into.append(buffer, size_t(got));
  return got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN));
}

pid_t spawn(const std::vector<std::string>& words, const std::filesystem::path& folder, const Pipe& out, const Pipe& err) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write_end, 1);
  posix_spawn_file_actions_adddup2(&actions, err.write_end, 2);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  pid_t pid = -1;
  int error = posix_spawn(&pid, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error == 0 ? pid : -1;
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& words, const std::filesystem::path& folder, const Limits& limits) {
  ProcessResult result;
  Pipe out, err;
  if (!out.open() || !err.open()) return result;
  const Clock::time_point start = Clock::now();
  const pid_t pid = spawn(words, folder, out, err);
  if (pid < 0) return result;
  out.close_write();
  err.close_write();
  auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };

  bool out_open = true, err_open = true, stopped = false, exited = false;
  int wait_status = 0;
  auto stop = [&](End reason) {
    if (!stopped) result.end = reason;
    stopped = true;
    kill(-pid, SIGKILL);
  };
  int pause_ms = 1;
  while (!exited) {
    pollfd fds[2] = {{out_open ? out.read_end : -1, POLLIN, 0}, {err_open ? err.read_end : -1, POLLIN, 0}};
    int ready = poll(fds, 2, pause_ms);
    if (ready > 0) {
      if (fds[0].revents != 0) out_open = drain(out.read_end, result.out);
      if (fds[1].revents != 0) err_open = drain(err.read_end, result.err);
    } else {
      pause_ms = std::min(pause_ms * 2, 10);
    }
    exited = waitpid(pid, &wait_status, WNOHANG) == pid;
    if (exited) break;
    if (elapsed() > limits.seconds) {
      stop(End::TimedOut);
    } else if (result.out.size() + result.err.size() > limits.output) {
      stop(End::TooMuchOutput);
    } else if (resident_bytes(pid) > limits.memory) {
      stop(End::TooMuchMemory);
    }
  }
  kill(-pid, SIGKILL);  // what it left behind in its group
  while (out_open && drain(out.read_end, result.out)) {
  }
  while (err_open && drain(err.read_end, result.err)) {
  }
  result.seconds = elapsed();
  if (!stopped) {
    result.end = WIFEXITED(wait_status) ? End::Exited : End::Signaled;
    result.status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : WTERMSIG(wait_status);
  }
  return result;
}

std::string describe_end(const ProcessResult& result, const Limits& limits) {
  switch (result.end) {
    case End::Exited: return fmt::format("exit status {}", result.status);
    case End::Signaled: return fmt::format("killed by signal {} ({})", result.status, strsignal(result.status));
    case End::TimedOut: return fmt::format("no end after {:g} s", limits.seconds);
    case End::TooMuchMemory: return fmt::format("more than {} MiB resident", limits.memory >> 20);
    case End::TooMuchOutput: return fmt::format("more than {} MiB of output", limits.output >> 20);
    case End::NotStarted: return "could not be started";
  }
  return "";
}

}  // namespace bendc::tests
