#include "driver/tool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "driver/scratch.h"

extern char** environ;

namespace bendc {

std::string c_compiler() {
  const char* chosen = std::getenv("CC");
  return chosen && *chosen ? chosen : "cc";
}

std::string path_word(const std::string& path) { return path.starts_with('-') || path.starts_with('@') ? "./" + path : path; }

ToolResult run_c_compiler(std::vector<std::string> words) {
  words.insert(words.begin(), c_compiler());
  ToolResult out = run_tool(words);
  if (!out.started) out.message = fmt::format("cannot start the C compiler `{}`: {}; install one, or name it in CC", words[0], out.message);
  return out;
}

ToolResult run_tool(const std::vector<std::string>& words) {
  ToolResult out;
  auto refused = [&](int error) {
    out.message = std::strerror(error);
    return out;
  };
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return refused(errno);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  // What waits here until a scratch folder is gone ends the tool at once.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  for (const int signal : kEndingSignals) sigdelset(&mask, signal);
  posix_spawnattr_setsigmask(&attributes, &mask);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawnp(&child, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error == 0) {
    out.started = true;
    char buffer[4096];
    for (ssize_t count; (count = read(ends[0], buffer, sizeof buffer)) != 0;) {
      if (count > 0) out.output.append(buffer, static_cast<size_t>(count));
      else if (errno != EINTR) break;
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    out.ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  close(ends[0]);
  return error == 0 ? out : refused(error);
}

}  // namespace bendc
