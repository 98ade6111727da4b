// One page without references to other files: the fork tree as a drawing, a table of the forks, and the source with each fork's line in the
// colour of its strategy and its reasons behind it.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "codegen/gpu/explain_forks.h"
#include "codegen/walk.h"

namespace bendc {

using namespace flow;

namespace {

constexpr const char* kStyle = R"(
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em; color: #1b1b1b; background: #fff; }
h1 { font-size: 1.4em; } h2 { font-size: 1.1em; margin-top: 2em; }
code, pre, .line { font-family: ui-monospace, monospace; font-size: 13px; }
table { border-collapse: collapse; } td, th { text-align: left; padding: .25em .8em .25em 0; vertical-align: top; border-bottom: 1px solid #ddd; }
.source { border: 1px solid #ddd; border-radius: 4px; overflow-x: auto; }
.line { white-space: pre; padding: 0 .6em; } .number { color: #888; display: inline-block; width: 3.2em; user-select: none; }
details { margin: 0; } summary { cursor: pointer; list-style: none; } summary::-webkit-details-marker { display: none; }
.why { font-family: system-ui, sans-serif; white-space: normal; padding: .4em 1em .6em 4em; margin: 0; }
.tag { padding: .05em .5em; border-radius: 3px; }
.cpu { background: #e6e6e6; } .host { background: #cfe3ff; } .flat { background: #c9efce; }
svg text { font: 13px ui-monospace, monospace; }
)";

std::string escape(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

// Markdown's backquotes, which all texts here use for names, as code.
std::string prose(std::string_view text) {
  std::string out;
  bool code = false;
  for (char c : text) {
    if (c == '`') {
      out += code ? "</code>" : "<code>";
      code = !code;
    } else {
      out += escape(std::string_view(&c, 1));
    }
  }
  return code ? out + "</code>" : out;
}

const char* colour(ForkStrategy strategy) {
  switch (strategy) {
    case ForkStrategy::Cpu: return "#e6e6e6";
    case ForkStrategy::Host: return "#cfe3ff";
    case ForkStrategy::Flat: return "#c9efce";
  }
  return "#fff";
}

class Page {
 public:
  Page(const Module& host, const DeviceModule& device, const SourceMap& sources, std::vector<ForkSite> sites)
      : m_(host), device_(device), sources_(sources), sites_(std::move(sites)) {}

  std::string run(const std::string& title) {
    out_ = fmt::format("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Forks of {0}</title><style>{1}</style></head><body>\n<h1>Forks of <code>{0}</code></h1>\n",
                       escape(title), kStyle);
    out_ += "<p><span class=\"tag host\">host</span> calls go to the next round of a grid &nbsp; <span class=\"tag flat\">flat</span> a whole tree is one grid &nbsp; "
            "<span class=\"tag cpu\">cpu</span> on the CPU's cores only</p>\n";
    if (!device_.entries.empty()) {
      out_ += "<h2>Calls marked with <code>!</code></h2>\n<ul>\n";
      for (const DeviceEntry& entry : device_.entries)
        out_ += fmt::format("<li><code>{}!</code>, defined at {}: {}</li>\n", escape(source_name(m_.funcs[entry.host].name)), place(m_.funcs[entry.host].span), prose(entry_text(entry)));
      out_ += "</ul>\n";
    }
    if (sites_.empty()) out_ += "<p>No forks.</p>\n";
    else {
      tree();
      table();
      listings();
    }
    return out_ + "</body></html>\n";
  }

 private:
  std::string place(Span span) const {
    return span.valid() ? fmt::format("{}:{}", escape(sources_[span.file].path), line_of(span)) : "no place";
  }
  uint32_t line_of(Span span) const { return sources_.locate(span.file, span.offset).line; }

  // ---- the drawing: `!` targets and forking defs, an edge where one reaches the other without a forking def between ----
  struct Def {
    ForkStrategy strategy = ForkStrategy::Cpu;
    uint32_t forks = 0;
    bool bang = false, self = false;
    std::set<std::string> below;
    size_t level = 0, row = 0;
  };

  void callees(FuncId f, std::set<uint32_t>& out) const {
    each_node(m_, m_.funcs[f].body, [&](NodeId at) {
      const Node& n = m_.nodes[at];
      if (n.kind == NodeKind::Let && n.expr.kind == ExprKind::Call) out.insert(n.expr.func.index);
      if (n.kind == NodeKind::Tail) out.insert(n.func.index);
      for (const CallSite& call : n.calls) out.insert(call.func.index);
    });
  }

  std::map<std::string, Def> defs() const {
    std::map<std::string, Def> out;
    for (const ForkSite& site : sites_) {
      Def& def = out[site.def];
      def.strategy = std::max(def.strategy, site.strategy);
      ++def.forks;
    }
    for (const DeviceEntry& entry : device_.entries) out[source_name(m_.funcs[entry.host].name)].bang = true;
    for (uint32_t f = 0; f < m_.funcs.size(); ++f) {
      const auto from = out.find(source_name(m_.funcs[FuncId(f)].name));
      if (from == out.end()) continue;
      std::set<uint32_t> seen{f};
      std::vector<uint32_t> work{f};
      while (!work.empty()) {
        std::set<uint32_t> next;
        callees(FuncId(work.back()), next);
        work.pop_back();
        for (uint32_t g : next) {
          const std::string name = source_name(m_.funcs[FuncId(g)].name);
          if (name == from->first) from->second.self = true;
          else if (out.count(name)) from->second.below.insert(name);
          else if (seen.insert(g).second) work.push_back(g);
        }
      }
    }
    return out;
  }

  void tree() {
    std::map<std::string, Def> all = defs();
    // Levels by distance from what nothing above calls; a def on a cycle without such a start begins one.
    std::map<std::string, size_t> above;
    for (const auto& [name, def] : all)
      for (const std::string& below : def.below) ++above[below];
    std::vector<std::string> work;
    std::set<std::string> placed;
    auto put = [&](const std::string& name, size_t level) {
      if (!placed.insert(name).second) return;
      all[name].level = level;
      work.push_back(name);
    };
    auto spread = [&] {
      for (size_t i = 0; i < work.size(); ++i) {
        const size_t level = all[work[i]].level + 1;
        const std::set<std::string> below = all[work[i]].below;
        for (const std::string& name : below) put(name, level);
      }
    };
    for (const auto& [name, def] : all)
      if (def.bang || above[name] == 0) put(name, 0);
    spread();
    for (const auto& [name, def] : all) {
      put(name, 0);
      spread();
    }
    std::map<size_t, size_t> width;
    size_t longest = 0;
    for (const std::string& name : work) {
      all[name].row = width[all[name].level]++;
      longest = std::max(longest, name.size());
    }
    size_t levels = 0, rows = 0;
    for (const auto& [level, count] : width) {
      levels = std::max(levels, level + 1);
      rows = std::max(rows, count);
    }
    const size_t box = longest * 8 + 40, step = box + 70, high = 34, drop = 56;
    auto x = [&](const Def& def) { return 10 + def.level * step; };
    auto y = [&](const Def& def) { return 20 + def.row * drop; };
    out_ += fmt::format("<h2>Fork tree</h2>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" role=\"img\" aria-label=\"defs that fork and what they reach\">\n"
                        "<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto-start-reverse\"><path d=\"M0 0L8 4L0 8z\" fill=\"#555\"/></marker></defs>\n",
                        levels * step, rows * drop + 20);
    for (const auto& [name, def] : all) {
      for (const std::string& below : def.below) {
        const Def& to = all[below];
        if (to.level > def.level)
          out_ += fmt::format("<path d=\"M{} {}L{} {}\" fill=\"none\" stroke=\"#555\" marker-end=\"url(#arrow)\"/>\n", x(def) + box, y(def) + high / 2, x(to), y(to) + high / 2);
        else
          out_ += fmt::format("<path d=\"M{} {}C{} {} {} {} {} {}\" fill=\"none\" stroke=\"#555\" marker-end=\"url(#arrow)\"/>\n", x(def) + box / 2, y(def) + high, x(def) + box / 2, y(def) + high + 24,
                              x(to) + box / 2, y(to) + high + 24, x(to) + box / 2, y(to) + high);
      }
      if (def.self)
        out_ += fmt::format("<path d=\"M{} {}C{} {} {} {} {} {}\" fill=\"none\" stroke=\"#555\" marker-end=\"url(#arrow)\"/>\n", x(def) + box - 26, y(def), x(def) + box - 26, y(def) - 18, x(def) + box - 4,
                            y(def) - 18, x(def) + box - 8, y(def));
      out_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"4\" fill=\"{}\" stroke=\"#888\"/><text x=\"{}\" y=\"{}\">{}{}</text>\n", x(def), y(def), box, high,
                          def.forks == 0 ? "#fff" : colour(def.strategy), x(def) + 10, y(def) + 21, escape(name), def.bang ? "!" : "");
    }
    out_ += "</svg>\n";
  }

  void table() {
    out_ += "<h2>Forks</h2>\n<table><tr><th>place</th><th>in</th><th>strategy</th><th>why</th></tr>\n";
    for (const ForkSite& site : sites_)
      out_ += fmt::format("<tr><td>{}</td><td><code>{}</code></td><td><span class=\"tag {}\">{}</span></td><td>{}</td></tr>\n", place(site.span), escape(site.def), strategy_name(site.strategy),
                          prose(site_head(site)), prose(site.reason));
    out_ += "</table>\n";
  }

  void listings() {
    std::map<uint32_t, std::multimap<uint32_t, const ForkSite*>> files;
    for (const ForkSite& site : sites_)
      if (site.span.valid()) files[site.span.file.index].emplace(line_of(site.span), &site);
    for (const auto& [file, rows] : files) {
      const Source& source = sources_[FileId(file)];
      out_ += fmt::format("<h2><code>{}</code></h2>\n<div class=\"source\">\n", escape(source.path));
      const auto count = static_cast<uint32_t>(source.line_starts.size());
      for (uint32_t line = 1; line <= count; ++line) {
        const std::string text = escape(sources_.line_text(FileId(file), line));
        const auto [first, last] = rows.equal_range(line);
        if (first == last) {
          out_ += fmt::format("<div class=\"line\"><span class=\"number\">{}</span>{}</div>\n", line, text);
          continue;
        }
        ForkStrategy strategy = ForkStrategy::Cpu;
        for (auto it = first; it != last; ++it) strategy = std::max(strategy, it->second->strategy);
        out_ += fmt::format("<details><summary class=\"line {}\"><span class=\"number\">{}</span>{}</summary>\n", strategy_name(strategy), line, text);
        for (auto it = first; it != last; ++it) {
          out_ += fmt::format("<div class=\"why\">{}<ul>", prose(site_head(*it->second)));
          for (const std::string& detail : site_details(*it->second)) out_ += fmt::format("<li>{}</li>", prose(detail));
          out_ += "</ul></div>\n";
        }
        out_ += "</details>\n";
      }
      out_ += "</div>\n";
    }
  }

  const Module& m_;
  const DeviceModule& device_;
  const SourceMap& sources_;
  const std::vector<ForkSite> sites_;
  std::string out_;
};

}  // namespace

std::string explain_html(const Module& host, const DeviceModule& device, const MachinePlan& plan, const SourceMap& sources, const std::string& title) {
  return Page(host, device, sources, find_fork_sites(host, device, plan)).run(title);
}

}  // namespace bendc
