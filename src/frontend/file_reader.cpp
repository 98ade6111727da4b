#include "frontend/file_reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

namespace bendc {

namespace {

constexpr off_t kMaxBytes = off_t{1} << 30;   // offsets in spans are 32 bits wide

std::string reason_of(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR: return "no such file";
    case EACCES: return "permission denied";
    case ELOOP: return "too many symbolic links";
    case ENAMETOOLONG: return "the path is too long";
    default: return std::strerror(error);
  }
}

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

std::optional<LoadedFile> read_file(const std::string& path, std::string& reason) {
  if (path.find('\0') != std::string::npos) {
    reason = "the path holds a NUL character";
    return std::nullopt;
  }
  // Non-blocking: opening a FIFO must not wait for a writer.
  Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat info;
  if (file.fd < 0 || fstat(file.fd, &info) != 0) {
    reason = reason_of(errno);
    return std::nullopt;
  }
  if (!S_ISREG(info.st_mode)) {
    reason = S_ISDIR(info.st_mode) ? "is a directory" : "is not a regular file";
    return std::nullopt;
  }
  if (info.st_size > kMaxBytes) {
    reason = "is larger than 1 GiB";
    return std::nullopt;
  }
  LoadedFile loaded;
  loaded.text.resize(static_cast<size_t>(info.st_size));
  size_t have = 0;
  while (have < loaded.text.size()) {
    ssize_t got = read(file.fd, loaded.text.data() + have, loaded.text.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      reason = reason_of(errno);
      return std::nullopt;
    }
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  loaded.text.resize(have);
  char* real = realpath(path.c_str(), nullptr);
  loaded.real_path = real ? real : path;
  std::free(real);
  return loaded;
}

std::optional<std::vector<FolderEntry>> list_folder(const std::string& path, std::string& reason) {
  std::vector<FolderEntry> entries;
  DIR* folder = opendir(path.c_str());
  if (folder == nullptr) {
    reason = reason_of(errno);
    return std::nullopt;
  }
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] == '.') continue;
    struct stat info;
    // A link to a folder is left out: it could lead back here.
    if (fstatat(dirfd(folder), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    const bool is_folder = S_ISDIR(info.st_mode);
    if (S_ISLNK(info.st_mode) && fstatat(dirfd(folder), entry->d_name, &info, 0) != 0) continue;
    if (is_folder || S_ISREG(info.st_mode)) entries.push_back({entry->d_name, is_folder});
  }
  closedir(folder);
  std::sort(entries.begin(), entries.end(), [](const FolderEntry& a, const FolderEntry& b) { return a.name < b.name; });
  return entries;
}

}  // namespace

FileReader disk_reader(std::string packages) { return {read_file, list_folder, std::move(packages)}; }

}  // namespace bendc
