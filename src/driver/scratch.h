// A folder of its own under TMPDIR, gone with its files at the end of a command. While it is there, signals that ask the process to end wait:
// they take effect when it is gone.
#pragma once
#include <signal.h>

#include <string>
#include <string_view>
#include <vector>

namespace bendc {

// The signals that wait: those of Ctrl-C, of `kill` and of a closed terminal.
inline constexpr int kEndingSignals[] = {SIGINT, SIGTERM, SIGHUP};

class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  // A file's path; it is removed with the folder, whoever writes it.
  [[nodiscard]] std::string file(std::string_view name);
  // Writes a file; what goes wrong is kept in `error`.
  std::string write(std::string_view name, std::string_view bytes);

  // The bytes of a file of the folder; false: `error` says why.
  [[nodiscard]] bool read(const std::string& path, std::string& bytes);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::string& error() const { return error_; }   // in one line; empty while all went well

 private:
  std::string path_, error_;
  std::vector<std::string> files_;
  bool made_ = false;
  sigset_t before_{};   // the thread's mask
};

}  // namespace bendc
