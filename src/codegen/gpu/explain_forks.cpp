#include "codegen/gpu/explain_forks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "codegen/walk.h"
#include "runtime/gpu/device_abi.h"

namespace bendc {

using namespace flow;

namespace {

class Explainer {
 public:
  Explainer(const Module& host, const DeviceModule& device, const MachinePlan& plan, const SourceMap& sources)
      : host_(host), device_(device), plan_(plan), sources_(sources) {}

  std::string run() {
    for (const DeviceEntry& entry : device_.entries) {
      const Func& func = host_.funcs[entry.host];
      out_ += fmt::format("`{}!`, defined at {}: {}\n", display(func.name), place(func.span),
                          entry.device.valid() ? "runs on a GPU when there is one" : fmt::format("runs on the CPU: {}", entry.refusal));
    }
    // One paragraph a place: instances of a template share it.
    std::map<std::pair<uint32_t, uint32_t>, std::string> forks;
    for (uint32_t f = 0; f < host_.funcs.size(); ++f) each_fork(FuncId(f), forks);
    for (const auto& [where, text] : forks) out_ += text;
    if (forks.empty()) out_ += "no forks\n";
    return std::move(out_);
  }

 private:
  static std::string display(const std::string& name) { return name.substr(0, name.find_first_of("~@$")); }
  std::string place(Span span) const {
    if (!span.valid()) return "no place";
    return fmt::format("{}:{}", sources_[span.file].path, sources_.locate(span.file, span.offset).line);
  }

  void each_fork(FuncId f, std::map<std::pair<uint32_t, uint32_t>, std::string>& forks) {
    std::vector<NodeId> work{host_.funcs[f].body};
    while (!work.empty()) {
      NodeId id = work.back();
      work.pop_back();
      for (; id.valid(); id = host_.nodes[id].next) {
        const Node& n = host_.nodes[id];
        for (const Arm& arm : n.arms) work.push_back(arm.body);
        if (n.other.valid()) work.push_back(n.other);
        if (n.body.valid()) work.push_back(n.body);
        if (n.kind == NodeKind::Fork) forks.try_emplace({n.span.file.index, n.span.offset}, paragraph(f, n));
      }
    }
  }

  std::string paragraph(FuncId f, const Node& fork) const {
    std::vector<std::string> callees;
    for (const CallSite& call : fork.calls) {
      const std::string name = "`" + display(host_.funcs[call.func].name) + "`";
      if (std::find(callees.begin(), callees.end(), name) == callees.end()) callees.push_back(name);
    }
    std::string text = fmt::format("\nfork at {} in `{}`, {} calls of {}\n", place(fork.span), display(host_.funcs[f].name), fork.calls.size(), fmt::join(callees, ", "));
    text += fmt::format("  on the CPU: {} for idle cores, the first call at once; without idle cores all in order, by a copy of `{}` without forks\n",
                        fork.calls.size() == 2 ? "a task" : fmt::format("{} tasks", fork.calls.size() - 1), display(host_.funcs[f].name));
    if (device_.entries.empty()) return text + "  on a GPU: never: no call is marked with `!`\n";
    if (!device_.reachable[f.index]) return text + "  on a GPU: never: no `!` call that can run there reaches it\n";
    const Cut* cut = nullptr;
    for (const Cut& c : plan_.cuts) {
      const Span span = device_.module.nodes[c.node].span;
      if (c.fork && span.file == fork.span.file && span.offset == fork.span.offset) cut = &c;
    }
    if (!cut) return text + "  on a GPU: in order\n";
    uint32_t task = 0;
    for (FuncId child : cut->children) task = std::max(task, BEND_TASK_HEADER + layout_bytes(child));
    text += fmt::format("  on a GPU: host: while few tasks are there, each call is a task of the next round ({} bytes of {} a record) and the fork waits in a join record of {} bytes;\n"
                        "            once every thread has several, its calls run one after another in one thread, from a frame of {} bytes\n",
                        task, plan_.task_stride, cut->join_bytes, cut->frame_bytes);
    for (const BoundedRecursion& row : device_.bounded) {
      if (row.func != f) continue;
      if (row.depth > 0)
        text += fmt::format("            seq: from a depth of {} on, at most {} calls, by ordinary calls in one thread without frames\n", row.depth, row.calls);
      else
        text += fmt::format("            no size threshold: {}\n", row.why);
    }
    text += "            not flat: one grid for a whole tree is not made by this version; not thread, warp, block: no launches from the device\n";
    return text;
  }

  uint32_t layout_bytes(FuncId child) const {
    const auto it = plan_.task_payload.find(child.index);
    return it == plan_.task_payload.end() ? 0 : it->second.bytes;
  }

  const Module& host_;
  const DeviceModule& device_;
  const MachinePlan& plan_;
  const SourceMap& sources_;
  std::string out_;
};

}  // namespace

std::string explain_forks(const Module& host, const DeviceModule& device, const MachinePlan& plan, const SourceMap& sources) { return Explainer(host, device, plan, sources).run(); }

}  // namespace bendc
