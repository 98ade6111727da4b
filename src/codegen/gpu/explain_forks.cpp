#include "codegen/gpu/explain_forks.h"

#include <fmt/format.h>

#include "codegen/gpu/fork_sites.h"

namespace bendc {

using namespace flow;

namespace {

std::string place(const SourceMap& sources, Span span) {
  if (!span.valid()) return "no place";
  return fmt::format("{}:{}", sources[span.file].path, sources.locate(span.file, span.offset).line);
}

std::string names(const std::vector<std::string>& list) {
  std::string out;
  for (const std::string& name : list) out += fmt::format("{}`{}`", out.empty() ? "" : ", ", name);
  return out;
}

}  // namespace

std::string entry_text(const DeviceEntry& entry) {
  return entry.device.valid() ? "runs on a GPU when there is one" : fmt::format("runs on the CPU: {}", entry.refusal);
}

std::string site_head(const ForkSite& site) {
  std::string out = fmt::format("{} calls of {}: {}", site.calls, names(site.callees), strategy_name(site.strategy));
  if (site.bounded_depth > 0) out += fmt::format(", seq up to {} {}", site.measure.empty() ? "a depth of" : fmt::format("`{}` =", site.measure), site.bounded_depth);
  return out;
}

std::vector<std::string> site_details(const ForkSite& site) {
  std::vector<std::string> out;
  out.push_back(fmt::format("because {}", site.reason));
  out.push_back(fmt::format("on the CPU: {} for idle cores, the first call at once; without idle cores all in order, by a copy of `{}` without forks",
                            site.calls == 2 ? "a task" : fmt::format("{} tasks", site.calls - 1), site.def));
  if (site.strategy == ForkStrategy::Cpu) {
    out.push_back(fmt::format("on a GPU: never: {}", site.reason));
    return out;
  }
  if (site.strategy == ForkStrategy::Flat)
    out.push_back(fmt::format("on a GPU: flat: from a depth of {} on, which {}, the whole tree is one grid while threads are free, {} a thread, arguments from the leaf's number, results combined "
                              "in the tree's order by shuffles and by the last of 32 warps",
                              site.flat_from, site.flat_loops ? "is worth part of a warp since its leaves loop" : "fills a warp", site.flat_leaves == 1 ? "a leaf" : fmt::format("{} leaves", site.flat_leaves)));
  out.push_back(fmt::format("on a GPU: {}host: while fewer tasks wait than the device has threads, each call is a task of the next round ({} bytes of {} a record) and the fork waits in a join record "
                            "of {} bytes; once every thread has one, its calls run one after another in one thread for 512 turns, from a frame of {} bytes",
                            site.strategy == ForkStrategy::Flat ? "below that, " : "", site.task_bytes, site.task_stride, site.join_bytes, site.frame_bytes));
  if (site.bounded_depth > 0)
    out.push_back(fmt::format("seq: from a depth of {} on, at most {} calls, by ordinary calls in one thread without frames", site.bounded_depth, site.bounded_calls));
  else if (!site.unbounded.empty())
    out.push_back(fmt::format("no size threshold: {}", site.unbounded));
  // What a million waiting calls take: the widest frontier that rounds let grow is a few times the resident threads.
  const double waiting = static_cast<double>(site.task_stride) + static_cast<double>(site.join_bytes) / site.calls;
  out.push_back(fmt::format("memory: {:.0f} MB for a million waiting calls", waiting));
  // Measured on an H200 (docs/performance.md): a nested grid costs 0.3 us among many and 6 us alone, a round 2 us for all calls that wait.
  out.push_back(fmt::format("not thread, warp, block: grids launched from the device cost more than a round that takes all waiting calls; --gpu-fork asks for them{}",
                            site.strategy != ForkStrategy::Flat ? "" : site.scan ? ", and a scan is the round's grid there, too" : fmt::format(", and from a depth of {} on a whole tree is one child grid, or its part in one", site.flat_from)));
  if (!site.not_flat.empty()) out.push_back(fmt::format("not flat: {}", site.not_flat));
  return out;
}

std::string explain_forks(const Module& host, const DeviceModule& device, const MachinePlan& plan, const SourceMap& sources) {
  std::string out;
  for (const DeviceEntry& entry : device.entries) {
    const Func& func = host.funcs[entry.host];
    out += fmt::format("`{}!`, defined at {}: {}\n", source_name(func.name), place(sources, func.span), entry_text(entry));
  }
  const std::vector<ForkSite> sites = find_fork_sites(host, device, plan);
  for (const ForkSite& site : sites) {
    out += fmt::format("\nfork at {} in `{}`, {}\n", place(sources, site.span), site.def, site_head(site));
    for (const std::string& line : site_details(site)) out += fmt::format("  {}\n", line);
  }
  if (sites.empty()) out += "no forks\n";
  return out;
}

}  // namespace bendc
