// The event loop and its effects, driven as generated code drives them: requests with continuations, here C++ closures. Every program runs
// through bend_start in a child process, whose output and exit status are compared.
#include <doctest/doctest.h>

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <sys/stat.h>
#include <sys/wait.h>
#include <vector>

#include "runtime/error.h"
#include "runtime/io/answers.h"
#include "runtime_fixture.h"

using namespace bendc;
using namespace bendc::rt;

namespace {

using Next = std::function<BendWord(const void* answer)>;

// The "generated code" of one program. Lives in the child process only.
struct Script {
  BendWorker* worker = nullptr;
  std::function<BendWord()> main;
  std::vector<Next> continuations;
  std::vector<std::function<BendWord()>> spawned;
} g_script;

enum EffectId : uint32_t {
#define BENDC_EFFECT(name) k_##name,
#include "runtime/effects.def"
#undef BENDC_EFFECT
  kEffectCount
};

constexpr uint64_t kRequestBytes = 8 + 8 + 48;   // one size for all arguments

BendWord resume(BendWorker* worker, BendWord request, const void* answer) {
  BendWord continuation = word_at(reinterpret_cast<char*>(request) + 8);
  heap_free(worker, reinterpret_cast<void*>(request), kRequestBytes);
  Next next = g_script.continuations[continuation >> 1];   // a copy: the table grows while it runs
  return next(answer);
}

BendWord node16(BendWord value, uint32_t second = 0) {
  char* node = static_cast<char*>(heap_alloc(g_script.worker, 16));
  u32_at(node) = 1;
  u32_at(node + 4) = second;
  word_at(node + 8) = value;
  return reinterpret_cast<BendWord>(node);
}

BendWord emit() { return node16(1); }
BendWord halt(uint32_t code, BendWord message) { return node16(message, code) | 1; }
BendWord str(const char* text) { return string_from(g_script.worker, text); }

template <class... Args>
BendWord request(EffectId effect, Next next, Args... args) {
  char* object = static_cast<char*>(heap_alloc(g_script.worker, kRequestBytes));
  std::memset(object, 0, kRequestBytes);
  u32_at(object) = 1;
  u32_at(object + 4) = effect;
  g_script.continuations.push_back(std::move(next));
  word_at(object + 8) = (g_script.continuations.size() - 1) << 1 | 1;
  uint64_t offset = 16;
  [[maybe_unused]] auto put = [&](auto value) {
    offset = (offset + sizeof value - 1) / sizeof value * sizeof value;
    std::memcpy(object + offset, &value, sizeof value);
    offset += sizeof value;
  };
  (put(args), ...);
  return node16(reinterpret_cast<BendWord>(object)) | 2;
}

BendWord print(const std::string& text, std::function<BendWord()> next) {
  return request(k_print, [next](const void*) { return next(); }, str(text.c_str()));
}
BendWord spawn(std::function<BendWord()> body, std::function<BendWord()> next) {
  g_script.spawned.push_back(std::move(body));
  return request(k_spawn, [next](const void*) { return next(); }, BendWord((g_script.spawned.size() - 1) << 1 | 1));
}

std::string text_of(BendWord string) {
  std::string text;
  u32_list_take(g_script.worker, string, [&](uint32_t c) {
    char bytes[4];
    text.append(bytes, encode_char(c, bytes));
  });
  return text;
}
template <class T>
T as(const void* answer) {
  T value;
  std::memcpy(&value, answer, sizeof value);
  return value;
}
// "done" or the failure's number and text; uses up the text.
template <class Result>
std::string failure(const Result& r) { return r.tag ? "done" : std::to_string(r.slot0) + " " + text_of(r.slot1); }

struct Outcome {
  std::string out, err;
  int status = -1;   // 128 + signal
};

std::string slurp(const std::string& path) {
  std::string text;
  if (std::FILE* f = std::fopen(path.c_str(), "rb")) {
    char part[4096];
    while (size_t n = std::fread(part, 1, sizeof part, f)) text.append(part, n);
    std::fclose(f);
  }
  return text;
}

size_t entries(const char* folder) {
  const std::filesystem::directory_iterator begin(folder);
  return static_cast<size_t>(std::distance(begin, std::filesystem::directory_iterator()));
}

Outcome run(std::function<BendWord()> main, const BendOptions* options = nullptr) {
  char dir[] = "/tmp/bend_loop_XXXXXX";
  REQUIRE(mkdtemp(dir) != nullptr);
  std::string out = std::string(dir) + "/out", err = std::string(dir) + "/err";
  pid_t child = fork();
  if (child == 0) {
    dup2(open(out.c_str(), O_WRONLY | O_CREAT, 0600), 1);
    dup2(open(err.c_str(), O_WRONLY | O_CREAT, 0600), 2);
    static const BendSlot op_slots[] = {{8, BEND_SLOT_OBJECT, nullptr}};
    static BendSlot string_slots[] = {{8, BEND_SLOT_DATA, nullptr}};   // the info follows: the type is recursive
    static BendCtorInfo string_ctors[] = {{BEND_CTOR_NULLARY, 0, {}, "SNil"}, {BEND_CTOR_NODE, 0, {16, 1, 1, 0, string_slots}, "SCon"}};
    static BendDataInfo string_info = {2, 1, string_ctors, "String"};
    string_slots[0].info = &string_info;
    static const BendCtorInfo op_ctors[] = {{BEND_CTOR_NODE, 0, {16, 1, 1, 0, op_slots}, "Emit"},
                                            {BEND_CTOR_NODE, 0, {16, 1, 1, 0, string_slots}, "Halt"},
                                            {BEND_CTOR_NODE, 0, {16, 1, 1, 0, op_slots}, "Request"}};
    static const BendDataInfo op_info = {3, 1, op_ctors, "IO.OP"};
    static BendObjectInfo objects[kEffectCount];
#define BENDC_EFFECT(id) objects[k_##id] = {BEND_OBJECT_REQUEST, 0, {kRequestBytes, 0, 0, 0, nullptr}, nullptr, bend_eff_##id, resume, 64, 8, #id};
#include "runtime/effects.def"
#undef BENDC_EFFECT
    g_script.main = std::move(main);
    static BendProgram program = {};
    program.abi_version = BEND_ABI_VERSION;
    program.main_kind = BEND_MAIN_IO;
    program.entry = reinterpret_cast<void*>(+[](BendWorker* worker) {
      g_script.worker = worker;
      return g_script.main();
    });
    program.apply_unit = [](BendWorker*, BendWord closure) { auto body = g_script.spawned[closure >> 1]; return body(); };
    program.objects = objects;
    program.object_count = kEffectCount;
    program.op_info = &op_info;
    program.string_info = &string_info;
    setenv("BEND_DEBUG_HEAP", "1", 0);
    char name[] = "prog", one[] = "x", two[] = "\xCE\xBB";
    char* argv[] = {name, one, two, nullptr};
    if (!options || !options->returns_errors) _exit(bend_start(&program, options, 3, argv));
    // One process goes on with other programs; nothing of those that ended is left in it.
    int status = 0;
    const size_t threads = entries("/proc/self/task"), descriptors = entries("/proc/self/fd");
    for (int i = 0; i < 10; ++i) status = bend_start(&program, options, 3, argv);
    dprintf(2, "returned, %zu threads and %zu descriptors more\n", entries("/proc/self/task") - threads, entries("/proc/self/fd") - descriptors);
    _exit(status);
  }
  int status = 0;
  waitpid(child, &status, 0);
  Outcome outcome = {slurp(out), slurp(err), WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status)};
  std::string remove = std::string("rm -r ") + dir;
  CHECK(std::system(remove.c_str()) == 0);
  return outcome;
}

const char* const kNoLeak = "bend: heap: 0 live words in 0 nodes\n";

}  // namespace

TEST_CASE("loop: print, write, print_err, args, get_env") {
  Outcome o = run([] {
    return print("caf\xC3\xA9", [] {
      return request(k_args, [](const void* a) {
        std::string all;
        for (BendWord list = as<BendWord>(a); WordNode* n = list_node<WordNode>(list);) {
          all += text_of(n->head) + ";";
          list = n->tail;
          heap_free(g_script.worker, n, kWordNodeBytes);
        }
        return print(all, [] {
          return request(k_get_env, [](const void* r) {
            return print(failure(as<ResultWord>(r)), [] {
              return request(k_print_err, [](const void*) { return emit(); }, str("to stderr"));
            });
          }, str("BEND_NO_SUCH_VARIABLE"));
        });
      });
    });
  });
  CHECK(o.status == 0);
  CHECK(o.out == "caf\xC3\xA9\nprog;x;\xCE\xBB;\n2 No such file or directory\n");
  CHECK(o.err == std::string("to stderr\n") + kNoLeak);
}

TEST_CASE("loop: Halt flushes, writes its text and ends everything with its code") {
  Outcome o = run([] { return print("first", [] { return halt(263, str("stop")); }); });
  CHECK(o.status == 7);
  CHECK(o.out == "first\n");
  CHECK(o.err == std::string("stop\n") + kNoLeak);
}

TEST_CASE("loop: the deadlock report names who waits on what") {
  Outcome o = run([] {
    return print("before", [] {
      return request(k_chan_new, [](const void* a) {
        BendWord chan = as<BendWord>(a);
        return spawn([chan] { return request(k_chan_send, [](const void*) { return emit(); }, chan, BendWord(5)); }, [chan] {
          return request(k_chan_recv, [chan](const void*) {
            return request(k_chan_recv, [](const void*) { return emit(); }, chan);
          }, chan);
        });
      }, 0u);
    });
  });
  CHECK(o.status == 1);
  CHECK(o.out == "before\n");
  CHECK(o.err == "bend: deadlock: every computation waits on a channel\n  computation 1 (main) waits to receive from channel 1 (0 of 0 buffered)\n");
}

TEST_CASE("loop: when asked, bend_start returns from run-time errors and halts, and leaves no thread and no descriptor") {
  BendOptions options = {};
  options.returns_errors = 1;
  // A job has started a helper thread and opened the poller; a value waits in a channel.
  auto after_a_job = [](std::function<BendWord()> end) {
    return request(k_file_size, [end](const void*) {
      return request(k_chan_new, [end](const void* a) {
        BendWord chan = as<BendWord>(a);
        return request(k_chan_send, [end](const void*) { return end(); }, chan, BendWord(5));
      }, 4u);
    }, BendWord(999 << 1 | 1));
  };
  std::string ten_times;
  for (int i = 0; i < 10; ++i) ten_times += "first\n";
  Outcome error = run([&] { return print("first", [&] { return after_a_job([] { bend_fail(g_script.worker, kErrorMatch, "f.bend:1"); return emit(); }); }); }, &options);
  CHECK(error.status == 1);
  CHECK(error.out == ten_times);
  CHECK(error.err.find("bend: error 2: a match has no case for its value, or an array has no such half (at f.bend:1)\nbend: error 2: ") == 0);
  CHECK(error.err.ends_with("returned, 0 threads and 0 descriptors more\n"));
  Outcome halted = run([&] { return print("first", [&] { return after_a_job([] { return halt(7, str("stop")); }); }); }, &options);
  CHECK(halted.status == 7);
  CHECK(halted.out == ten_times);
  CHECK(halted.err.ends_with("returned, 0 threads and 0 descriptors more\n"));
}

TEST_CASE("loop: rendezvous order, and the process outlives main") {
  Outcome o = run([] {
    return request(k_chan_new, [](const void* a) {
      BendWord chan = as<BendWord>(a);
      static std::function<BendWord(BendWord, int)> receiver, sender;
      receiver = [](BendWord c, int i) {
        return request(k_chan_recv, [c, i](const void* r) {
          struct { uint32_t tag; BendWord value; } maybe;
          std::memcpy(&maybe, r, sizeof maybe);
          if (maybe.tag == 0) return print("closed", [] { return emit(); });
          return print("s" + std::to_string(maybe.value >> 1), [c, i] { return receiver(c, i + 1); });
        }, c);
      };
      sender = [](BendWord c, int i) {
        if (i == 3) return request(k_chan_close, [](const void*) { return emit(); }, c);
        return print("m" + std::to_string(i), [c, i] {
          return request(k_chan_send, [c, i](const void* ok) {
            CHECK(as<uint32_t>(ok) == 1);
            return sender(c, i + 1);
          }, c, BendWord(i << 1 | 1));
        });
      };
      return spawn([chan] { return receiver(chan, 0); }, [chan] { return sender(chan, 0); });
    }, 0u);
  });
  CHECK(o.status == 0);
  CHECK(o.out == "m0\ns0\nm1\nm2\ns1\ns2\nclosed\n");
  CHECK(o.err == kNoLeak);
}

TEST_CASE("loop: closed and stale channels") {
  Outcome o = run([] {
    return request(k_chan_new, [](const void* a) {
      BendWord c = as<BendWord>(a);
      return request(k_chan_send, [c](const void* ok) {
        CHECK(as<uint32_t>(ok) == 1);
        return request(k_chan_close, [c](const void*) {
          return request(k_chan_send, [c](const void* late) {
            return print("send " + std::to_string(as<uint32_t>(late)), [c] {
              return request(k_chan_recv, [c](const void* r) {
                return print("recv " + std::to_string(as<uint32_t>(r)), [c] {
                  return request(k_chan_recv, [c](const void* r2) {
                    return print("recv " + std::to_string(as<uint32_t>(r2)), [c] {
                      return request(k_chan_new, [c](const void* a2) {
                        CHECK(as<BendWord>(a2) != c);
                        return request(k_chan_send, [](const void* stale) {
                          return print("stale " + std::to_string(as<uint32_t>(stale)), [] { return emit(); });
                        }, c, BendWord(3));
                      }, 1u);
                    });
                  }, c);
                });
              }, c);
            });
          }, c, BendWord(3));
        }, c);
      }, c, BendWord(3));
    }, 4u);
  });
  CHECK(o.status == 0);
  CHECK(o.out == "send 0\nrecv 1\nrecv 0\nstale 0\n");
}

TEST_CASE("loop: timers fire in deadline order, ties in park order") {
  Outcome o = run([] {
    auto sleeper = [](uint32_t ms, const char* name) {
      return [ms, name] { return request(k_sleep, [name](const void*) { return print(name, [] { return emit(); }); }, ms); };
    };
    return spawn(sleeper(60, "c"), [=] {
      return spawn(sleeper(20, "a"), [=] {
        return spawn(sleeper(20, "b"), [=] { return sleeper(0, "zero")(); });
      });
    });
  });
  CHECK(o.status == 0);
  CHECK(o.out == "zero\na\nb\nc\n");
}

TEST_CASE("loop: files") {
  char path[] = "/tmp/bend_file_XXXXXX";
  close(mkstemp(path));
  std::string name = path;
  Outcome o = run([name] {
    return request(k_file_open, [name](const void* a) {
      ResultWord opened = as<ResultWord>(a);
      REQUIRE(opened.tag == 1);
      return request(k_file_write, [name](const void* a2) {
        auto w = as<Beside<ResultU32>>(a2);
        return print("write " + failure(w.result), [name, w] {
          return request(k_file_read, [name](const void* a3) {
            auto bad = as<Beside<ResultWord>>(a3);
            return print("read " + failure(bad.result), [name, bad] {
              return request(k_file_close, [name](const void*) {
                return request(k_file_open, [](const void* a4) {
                  ResultWord r = as<ResultWord>(a4);
                  return request(k_file_read, [](const void* a5) {
                    auto got = as<Beside<ResultWord>>(a5);
                    return print("got " + text_of(got.result.slot0), [got] {
                      return request(k_file_read_at, [](const void* a6) {
                        auto at = as<Beside<ResultWord>>(a6);
                        std::string codes;
                        u32_list_take(g_script.worker, at.result.slot0, [&](uint32_t b) { codes += std::to_string(b) + " "; });
                        return print(codes, [at] {
                          return request(k_file_size, [](const void* a7) {
                            auto size = as<Beside<ResultU32>>(a7);
                            return print(std::to_string(size.result.slot0), [size] {
                              return request(k_file_read, [](const void* a8) {
                                auto end = as<Beside<ResultWord>>(a8);
                                return print("end [" + text_of(end.result.slot0) + "]", [end] {
                                  return request(k_file_close, [](const void*) { return emit(); }, end.handle);
                                });
                              }, size.handle, 10u);
                            });
                          }, at.handle);
                        });
                      }, got.handle, 1u, 3u);
                    });
                  }, r.slot0, 100u);
                }, str(name.c_str()), str("r"));
              }, bad.handle);
            });
          }, w.handle, 10u);
        });
      }, opened.slot0, str("x\xCE\xBBy\xFF"));
    }, str(name.c_str()), str("w"));
  });
  CHECK(o.status == 0);
  CHECK(o.out == "write done\nread 9 Bad file descriptor\ngot x\xCE\xBBy\xEF\xBF\xBD\n206 187 121 \n7\nend []\n");
  CHECK(o.err == kNoLeak);
  unlink(path);
}

TEST_CASE("loop: open errors are errno and text") {
  auto open_error = [](const char* path, const char* mode) {
    Outcome o = run([=] {
      return request(k_file_open, [](const void* a) { return print(failure(as<ResultWord>(a)), [] { return emit(); }); }, str(path), str(mode));
    });
    CHECK(o.err == kNoLeak);
    return o.out;
  };
  CHECK(open_error("", "r") == "2 No such file or directory\n");
  CHECK(open_error("/tmp", "rw") == "22 Invalid argument\n");
  CHECK(open_error("/tmp", "w") == "21 Is a directory\n");
  CHECK(open_error("/no/such/file", "r") == "2 No such file or directory\n");
}

TEST_CASE("loop: a process with input, both outputs and a code; limits and deadlines") {
  auto sh = [](const char* command, const char* input, uint32_t max, uint32_t ms) {
    Outcome o = run([=] {
      WordListBuilder args(g_script.worker);
      args.add(str("-c"));
      args.add(str(command));
      return request(k_process_run, [](const void* a) {
        auto r = as<ResultU32Texts>(a);
        if (r.tag == 0) return print(failure(r), [] { return emit(); });
        std::string out = text_of(r.slot1), err = text_of(r.slot2);
        return print(std::to_string(r.slot0) + " [" + out + "][" + err + "]", [] { return emit(); });
      }, str("sh"), args.list(), str(input), max, ms);
    });
    CHECK(o.status == 0);
    CHECK(o.err == kNoLeak);
    return o.out;
  };
  CHECK(sh("cat; echo oops >&2; exit 3", "in\xCE\xBB", 1000, 10000) == "3 [in\xCE\xBB][oops\n]\n");
  CHECK(sh("kill -9 $$", "", 1000, 10000) == "137 [][]\n");
  CHECK(sh("sleep 10", "", 1000, 50) == "110 Connection timed out\n");
  CHECK(sh("yes", "", 1000, 10000) == "27 File too large\n");
  CHECK(sh("sleep 5 & echo now", "", 1000, 4000) == "0 [now\n][]\n");
  CHECK(sh("exit 0", std::string(300000, 'x').c_str(), 1000, 4000) == "0 [][]\n");
  CHECK(sh("head -c 200000 /dev/zero | tr '\\0' a | wc -c", "", 1000, 4000) == "0 [200000\n][]\n");
  CHECK(sh("true", "", 0, 50) == "22 Invalid argument\n");
  CHECK(sh("true", "", 10, 0) == "22 Invalid argument\n");
}

TEST_CASE("loop: TCP echo between computations, polls, closed peers; UDP") {
  Outcome o = run([] {
    return request(k_tcp_listen, [](const void* a) {
      ResultWord listening = as<ResultWord>(a);
      REQUIRE(listening.tag == 1);
      auto server = [listening] {
        return request(k_tcp_accept, [](const void* a2) {
          auto got = as<Beside<ResultWord>>(a2);
          REQUIRE(got.result.tag == 1);
          return request(k_listener_close, [got](const void*) {
            return request(k_tcp_recv, [](const void* a3) {
              auto data = as<Beside<ResultWord>>(a3);
              return request(k_tcp_send, [](const void* a4) {
                auto sent = as<Beside<ResultU32>>(a4);
                return request(k_socket_close, [](const void*) { return emit(); }, sent.handle);
              }, data.handle, data.result.slot0);
            }, got.result.slot0, 100u);
          }, got.handle);
        }, listening.slot0);
      };
      return spawn(server, [] {
        return request(k_tcp_connect, [](const void* a2) {
          ResultWord to = as<ResultWord>(a2);
          REQUIRE(to.tag == 1);
          return request(k_tcp_poll, [](const void* a3) {
            auto none = as<Beside<ResultMaybe>>(a3);
            return print("poll " + std::to_string(none.result.tag) + std::to_string(none.result.slot0), [none] {
              return request(k_tcp_send, [](const void* a4) {
                auto sent = as<Beside<ResultU32>>(a4);
                return request(k_tcp_recv, [](const void* a5) {
                  auto back = as<Beside<ResultWord>>(a5);
                  return print("back " + text_of(back.result.slot0), [back] {
                    return request(k_tcp_recv_bytes, [](const void* a6) {
                      auto end = as<Beside<ResultWord>>(a6);
                      return print(end.result.slot0 == 0 ? "closed" : "open", [end] {
                        return request(k_tcp_recv, [](const void* a7) {
                          auto zero = as<Beside<ResultWord>>(a7);
                          return print(failure(zero.result), [zero] {
                            return request(k_socket_close, [](const void*) { return emit(); }, zero.handle);
                          });
                        }, end.handle, 0u);
                      });
                    }, back.handle, 10u);
                  });
                }, sent.handle, 100u);
              }, none.handle, str("h\xCE\xBB"));
            });
          }, to.slot0, 10u, 20u);
        }, str("127.0.0.1"), 28471u);
      });
    }, str("127.0.0.1"), 28471u);
  });
  CHECK(o.status == 0);
  CHECK(o.out == "poll 10\nback h\xCE\xBB\nclosed\n22 Invalid argument\n");
  CHECK(o.err == kNoLeak);

  Outcome u = run([] {
    return request(k_udp_bind, [](const void* a) {
      ResultWord bound = as<ResultWord>(a);
      REQUIRE(bound.tag == 1);
      return request(k_udp_poll, [](const void* a2) {
        auto none = as<Beside<ResultMaybeDatagram>>(a2);
        REQUIRE(none.result.tag == 1);
        CHECK(none.result.slot0 == 0);
        return request(k_udp_send_to, [](const void* a3) {
          auto sent = as<Beside<ResultU32>>(a3);
          REQUIRE(sent.result.tag == 1);
          return request(k_udp_recv_from, [](const void* a4) {
            auto got = as<Beside<ResultDatagram>>(a4);
            std::string host = text_of(got.result.slot0), data = text_of(got.result.slot2);
            return print(host + " " + std::to_string(got.result.slot1) + " " + data, [got] {
              return request(k_socket_close, [](const void*) { return emit(); }, got.handle);
            });
          }, sent.handle, 100u);
        }, none.handle, str("127.0.0.1"), 28472u, str("dgram"));
      }, bound.slot0, 100u);
    }, str("127.0.0.1"), 28472u);
  });
  CHECK(u.out == "127.0.0.1 28472 dgram\n");
  CHECK(u.err == kNoLeak);

  for (const char* host : {"localhost", "127.0.0.01", "1.2.3", "1.2.3.4.5", "256.1.1.1", ""}) {
    Outcome bad = run([host] {
      return request(k_tcp_listen, [](const void* a) { return print(failure(as<ResultWord>(a)), [] { return emit(); }); }, str(host), 80u);
    });
    CHECK(bad.out == "22 Invalid argument\n");
  }
}

TEST_CASE("start: bad variables name themselves and exit 2") {
  for (auto [name, value] : {std::pair{"BEND_THREADS", "0"}, {"BEND_THREADS", "many"}, {"BEND_STACK", "big"}, {"BEND_HEAP", "1XB"}, {"BEND_DEBUG_HEAP", "yes"}}) {
    setenv(name, value, 1);
    Outcome o = run([] { return emit(); });
    unsetenv(name);
    CHECK(o.status == 2);
    CHECK(o.err.find(name) != std::string::npos);
    CHECK(o.err.find(value) != std::string::npos);
  }
}

namespace {
int deep(int n) {
  volatile char frame[512];
  frame[0] = static_cast<char>(n);
  return n == 0 ? 0 : deep(n - 1) + frame[0];
}
}  // namespace

TEST_CASE("start: a stack overflow is error 7 with the limit, after the text printed before it") {
  setenv("BEND_STACK", "16MB", 1);
  Outcome o = run([] { return print("before", [] { return halt(static_cast<uint32_t>(deep(1 << 30)), 0); }); });
  unsetenv("BEND_STACK");
  CHECK(o.status == 1);
  CHECK(o.out == "before\n");
  CHECK(o.err.find("error 7") != std::string::npos);
  CHECK(o.err.find("16777216") != std::string::npos);
}

TEST_CASE("start: running out of memory is error 3 with numbers") {
  setenv("BEND_HEAP", "64MB", 1);
  Outcome o = run([] {
    for (;;) (void)str("a string that is kept for ever");
    return emit();
  });
  unsetenv("BEND_HEAP");
  CHECK(o.status == 1);
  CHECK(o.err.find("error 3") != std::string::npos);
  CHECK(o.err.find("67108864") != std::string::npos);
}
