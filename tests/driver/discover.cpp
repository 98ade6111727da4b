#include "discover.h"

#include <algorithm>
#include <map>

#include "run_case.h"

namespace bendc::tests {
namespace {

namespace fs = std::filesystem;

bool is_folder_case(const fs::path& file) { return file.filename() == "main.bend" || file.filename() == "PROOF.bend"; }

void walk(const fs::path& root, const fs::path& folder, const std::string& prefix, std::vector<Case>& into) {
  std::vector<fs::path> entries;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) entries.push_back(entry.path());
  std::sort(entries.begin(), entries.end());
  auto add = [&](const fs::path& file, const fs::path& named) {
    std::string id = fs::relative(named, root).replace_extension().generic_string();
    std::string category = id.substr(0, id.find('/'));
    Case c = read_case(file, prefix + id, category);
    for (const std::string& lane : c.lanes) {
      if (!lane_named(lane)) c.problems.push_back("unknown lane `" + lane + "`");
    }
    into.push_back(std::move(c));
  };
  for (const fs::path& path : entries) {
    if (folder != root && is_folder_case(path)) return add(path, folder);
  }
  for (const fs::path& path : entries) {
    if (fs::is_directory(path)) {
      if (path.filename() != "seed") walk(root, path, prefix, into);
    } else if (path.extension() == ".bend") {
      add(path, path);
    }
  }
}

// Every file of a case by its name below the case's folder.
std::map<std::string, std::string> contents(const Case& c) {
  std::map<std::string, std::string> files;
  if (!is_folder_case(c.file)) {
    files[c.file.filename()] = read_file(c.file).value_or("");
    return files;
  }
  fs::path folder = c.file.parent_path();
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files[fs::relative(entry.path(), folder)] = read_file(entry.path()).value_or("");
  }
  return files;
}

}  // namespace

std::vector<Case> discover_cases(const fs::path& root, const std::string& prefix, bool writable) {
  std::vector<Case> cases;
  if (fs::is_directory(root)) walk(root, root, prefix, cases);
  for (Case& c : cases) c.writable = writable;
  std::sort(cases.begin(), cases.end(), [](const Case& a, const Case& b) { return a.id < b.id; });
  return cases;
}

void drop_copies(std::vector<Case>& others, const std::vector<Case>& own, const std::string& prefix) {
  std::erase_if(others, [&](const Case& other) {
    std::string id = other.id.substr(prefix.size());
    auto same = std::find_if(own.begin(), own.end(), [&](const Case& c) { return c.id == id; });
    return same != own.end() && contents(*same) == contents(other);
  });
}

}  // namespace bendc::tests
