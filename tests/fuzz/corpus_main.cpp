// Runs every file of a corpus: fuzz_corpus FOLDER, with the folders parse, check and flow inside. Each input runs in a process of its own, which has
// 10 s and 2 GiB. Ends with the line `N passed, N failed`.
#include <dirent.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz/targets.h"

namespace {

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> out;
  if (DIR* dir = opendir(folder.c_str())) {
    while (const dirent* entry = readdir(dir))
      if (entry->d_name[0] != '.') out.push_back(folder + "/" + entry->d_name);
    closedir(dir);
  }
  std::sort(out.begin(), out.end());
  return out;
}

bool survives(void (*target)(std::string_view), const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const pid_t child = fork();
  if (child == 0) {
    const rlimit seconds{10, 10}, memory{rlim_t{2} << 30, rlim_t{2} << 30};
    setrlimit(RLIMIT_CPU, &seconds);
#if !defined(__SANITIZE_ADDRESS__)
    setrlimit(RLIMIT_AS, &memory);
#else
    (void)memory;
#endif
    target(bytes);
    _exit(0);
  }
  int status = 1;
  waitpid(child, &status, 0);
  return status == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("usage: fuzz_corpus FOLDER\n", stderr), 2;
  unsigned passed = 0, failed = 0;
  const struct { const char* name; void (*target)(std::string_view); } targets[] = {
      {"parse", bendc::fuzz::parse_input}, {"check", bendc::fuzz::check_input}, {"flow", bendc::fuzz::flow_input}};
  for (const auto& t : targets) {
    for (const std::string& path : files_in(std::string(argv[1]) + "/" + t.name)) {
      if (survives(t.target, path)) ++passed;
      else ++failed, std::printf("FAIL %s\n", path.c_str());
      std::fflush(stdout);
    }
  }
  std::printf("%u passed, %u failed\n", passed, failed);
  return failed != 0;
}
