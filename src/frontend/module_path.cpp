#include "frontend/module_path.h"

#include <algorithm>
#include <vector>

namespace bendc {

namespace {

bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool digit(char c) { return c >= '0' && c <= '9'; }

bool segment(std::string_view text) {
  if (text.empty() || !letter(text[0])) return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return letter(c) || digit(c) || c == '-'; });
}

std::vector<std::string_view> split(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    size_t slash = std::min(path.find('/'), path.size());
    if (slash > 0) parts.push_back(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return parts;
}

}  // namespace

ImportPath classify_import(std::string_view path) {
  if (path.starts_with("0x") || path.find('@') != std::string_view::npos) return ImportPath::Package;
  if (path.starts_with("/")) path.remove_prefix(1);
  else if (path.starts_with("./")) path.remove_prefix(2);
  else
    while (path.starts_with("../")) path.remove_prefix(3);
  size_t slash = path.rfind('/');
  std::string_view last = slash == std::string_view::npos ? path : path.substr(slash + 1);
  std::string_view folders = slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
  bool good = slash != 0;
  while (good && !folders.empty()) {
    size_t end = std::min(folders.find('/'), folders.size());
    good = segment(folders.substr(0, end)) && end + 1 != folders.size();
    folders.remove_prefix(std::min(end + 1, folders.size()));
  }
  size_t dot = last.find('.');
  if (!good || !segment(last.substr(0, dot))) return ImportPath::Malformed;
  if (dot == std::string_view::npos) return ImportPath::NoSuffix;
  return last.substr(dot) == ".bend" ? ImportPath::File : ImportPath::OtherSuffix;
}

bool stays_inside(std::string_view path) {
  return !path.empty() && !path.starts_with('/') && path != ".." && !path.starts_with("../");
}

std::string directory_of(std::string_view path) {
  size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string() : std::string(path.substr(0, slash + 1));
}

std::string join_path(std::string_view directory, std::string_view path) {
  std::string whole = path.starts_with("/") ? std::string(path) : std::string(directory).append(path);
  std::vector<std::string_view> kept;
  for (std::string_view part : split(whole)) {
    if (part == ".") continue;
    if (part == ".." && !kept.empty() && kept.back() != "..") kept.pop_back();
    else if (part != ".." || !whole.starts_with("/")) kept.push_back(part);
  }
  std::string out = whole.starts_with("/") ? "/" : "";
  for (size_t i = 0; i < kept.size(); ++i) (out += i ? "/" : "") += kept[i];
  return out;
}

std::string key_of(std::string_view real_path, std::string_view entry_directory) {
  std::vector<std::string_view> file = split(real_path), base = split(entry_directory);
  size_t shared = 0;
  while (shared < base.size() && shared + 1 < file.size() && base[shared] == file[shared]) ++shared;
  std::string key;
  for (size_t i = shared; i < base.size(); ++i) key += "../";
  for (size_t i = shared; i < file.size(); ++i) (key += i > shared ? "/" : "") += file[i];
  if (key.ends_with(".bend")) key.resize(key.size() - 5);
  return key;
}

}  // namespace bendc
