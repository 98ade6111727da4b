// bend_flip is written in PTX by hand and its twin in C++ (runtime/gpu/rounds.h): the PTX is read here, instruction by instruction, on random control
// blocks, and must leave what the twin leaves.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/gpu/kernels.h"
#include "runtime/gpu/overlap.h"
#include "runtime/gpu/rounds.h"

namespace bendc::test {

namespace {

// One thread's straight-line kernel of one parameter, an address: the instructions that bend_flip uses.
class PtxThread {
 public:
  PtxThread(const std::string& ptx, const std::string& kernel) {
    std::istringstream lines(ptx.substr(ptx.find(".entry " + kernel + "(")));
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line) && line != "}") {
      for (char& c : line)
        if (c == ',' || c == ';' || c == '{') c = ' ';
      std::istringstream words(line);
      std::vector<std::string> code;
      for (std::string word; words >> word && word.compare(0, 2, "//") != 0;) code.push_back(word);
      if (code.empty() || code[0] == ".reg") continue;
      if (code[0].back() == ':') labels_[code[0].substr(0, code[0].size() - 1)] = code_.size();
      else code_.push_back(code);
    }
  }

  // False when it meets an instruction that it does not know, or does not end.
  bool run(void* parameter) {
    parameter_ = reinterpret_cast<uint64_t>(parameter);
    values_.clear();
    size_t at = 0;
    for (int steps = 0; steps < 10000 && at < code_.size(); ++steps) {
      std::vector<std::string> code = code_[at++];
      if (code[0][0] == '@') {
        const bool holds = values_[code[0].substr(1)] != 0;
        code.erase(code.begin());
        if (!holds) continue;
      }
      if (code[0] == "ret") return true;
      if (code[0] == "bra") at = labels_.at(code[1]);
      else if (!step(code)) return false;
    }
    return false;
  }

 private:
  uint64_t value(const std::string& word) { return word[0] == '%' ? values_[word] : std::stoull(word); }
  void* place(const std::string& word) {   // [%d1] or [%d1+8]
    const size_t plus = word.find('+');
    const uint64_t base = value(word.substr(1, (plus == std::string::npos ? word.size() - 1 : plus) - 1));
    return reinterpret_cast<void*>(base + (plus == std::string::npos ? 0 : std::stoull(word.substr(plus + 1))));
  }

  bool step(const std::vector<std::string>& code) {
    const std::string& op = code[0];
    const std::string kind = op.substr(0, op.find('.'));
    const bool wide = op.compare(op.size() - 2, 2, "64") == 0;
    const uint64_t mask = wide ? UINT64_MAX : UINT32_MAX;
    auto in = [&](size_t i) { return value(code[i]) & mask; };
    if (kind == "griddepcontrol") return true;
    if (op == "ld.param.u64") values_[code[1]] = parameter_;
    else if (op == "cvt.u64.u32") values_[code[1]] = value(code[2]) & UINT32_MAX;
    else if (kind == "ld") {
      uint64_t word = 0;
      std::memcpy(&word, place(code[2]), wide ? 8 : 4);
      values_[code[1]] = word;
    } else if (kind == "st") {
      const uint64_t word = in(2);
      std::memcpy(place(code[1]), &word, wide ? 8 : 4);
    } else if (kind == "setp") {
      const uint64_t a = in(2), b = in(3);
      const std::string compare = op.substr(5, 2);
      const bool holds = compare == "eq" ? a == b : compare == "ne" ? a != b : compare == "gt" ? a > b : compare == "ge" ? a >= b : a < b;
      const bool known = compare == "eq" || compare == "ne" || compare == "gt" || compare == "ge" || compare == "lt";
      const bool either = op.compare(7, 4, ".or.") == 0;
      if (!known || (!either && code.size() > 4)) return false;
      values_[code[1]] = holds || (either && value(code[4]) != 0);
    } else if (kind == "selp") values_[code[1]] = value(code[4]) != 0 ? in(2) : in(3);
    else if (kind == "mov") values_[code[1]] = in(2);
    else if (kind == "add") values_[code[1]] = (in(2) + in(3)) & mask;
    else if (kind == "and") values_[code[1]] = in(2) & in(3);
    else if (kind == "shr") values_[code[1]] = in(2) >> value(code[3]);
    else if (kind == "shl") values_[code[1]] = (in(2) << value(code[3])) & mask;
    else if (kind == "min") values_[code[1]] = std::min(in(2), in(3));
    else if (kind == "max") values_[code[1]] = std::max(in(2), in(3));
    else return false;
    return true;
  }

  std::vector<std::vector<std::string>> code_;
  std::map<std::string, size_t> labels_;
  std::map<std::string, uint64_t> values_;
  uint64_t parameter_ = 0;
};

}  // namespace

TEST_CASE("gpu: the PTX of bend_flip does what its twin does") {
  char* overlapping = rt::gpu::overlapping_ptx(rt::gpu::kRuntimePtx);
  REQUIRE(overlapping);
  PtxThread flip(overlapping, "bend_flip");
  std::free(overlapping);
  std::mt19937_64 random(7);
  auto upto = [&](uint64_t most) { return random() % (most + 1); };
  auto width = [&] { return static_cast<uint32_t>(upto(uint64_t{1} << upto(20))); };
  uint64_t modes = 0, spreads = 0, budgets = 0, groups = 0, modes_after_trees = 0;
  for (int i = 0; i < 3000; ++i) {
    BendDeviceControl device = {};
    device.in_queue = random();
    device.out_queue = random();
    device.in_resumes = random();
    device.out_resumes = random();
    device.in_count = i % 50 == 0 ? 0 : width();
    device.out_count = i % 3 == 0 ? device.in_count + static_cast<uint32_t>(upto(device.in_count / 2)) : width();
    device.out_resume_count = i % 2 ? 0 : width();
    device.queue_capacity = i % 4 ? 1u << 22 : width();
    device.groups = i % 2 ? 0 : upto(1u << 17) << BEND_GROUP_SHIFT | upto(1u << 21);
    device.group_capacity = i % 5 ? 1u << 16 : 0;
    device.warp_capacity = 1u << 20;
    device.error = i % 20 == 1 ? random() : 0;
    device.resident_threads = i % 2 ? 84480 : 1024;
    device.target = i % 6 == 0 ? UINT32_MAX : i % 6 == 1 ? 0 : i % 6 == 2 ? device.resident_threads / 2 : device.resident_threads;
    device.middle = i % 7 == 0 ? 0 : 1u << upto(16);
    device.middle_budget = 64;
    device.sequential_budget = 512;
    device.again_budget = 128;
    device.wide_trees = i % 11 == 0;
    device.mode = i % 3;
    device.most_spread = i % 9 == 0 ? 0 : BEND_LANE_BITS;
    device.tasks = random() >> 8;
    device.widest = width();
    device.next_task = width();
    device.waits = i % 13 == 0;
    const bool trees = device.groups != 0 && device.in_count != 0 && device.waits == 0;
    BendDeviceControl twin = device;
    REQUIRE(flip.run(&device));
    rt::gpu::flip(&twin);
    CHECK(std::memcmp(&device, &twin, sizeof device) == 0);
    modes |= 1u << device.mode;
    if (trees) modes_after_trees |= 1u << device.mode;
    spreads |= 1u << device.spread;
    budgets |= device.budget;
    groups |= 1u << device.groups_wanted;
  }
  CHECK(modes == 7);
  CHECK(modes_after_trees == (1u << BEND_MODE_PARALLEL | 1u << BEND_MODE_SEQUENTIAL));
  CHECK(spreads == 63);
  CHECK(budgets == (64 | 128 | 512));
  CHECK(groups == 3);
}

}  // namespace bendc::test
