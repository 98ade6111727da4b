// TCP and UDP over IPv4, on non-blocking sockets: an effect tries first, waits for the descriptor when the system says so, and lets others go
// first after every success, so that a busy peer cannot starve the rest.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/io/answers.h"
#include "runtime/io/loop.h"
#include "runtime/message.h"
#include "runtime/runtime.h"
#include "support/text.h"

using namespace bendc;
using namespace bendc::rt;

namespace {

constexpr int kBacklog = 512;
constexpr size_t kMostReceived = 64u << 10;   // per call; a stream's rest comes with the next, a datagram is never longer
constexpr uint64_t kMillisecond = 1'000'000;

struct AddressArgs {
  BendWord continuation, host;
  uint32_t port;
};
struct HandleArgs {
  BendWord continuation, socket;
};
struct SendArgs {
  BendWord continuation, socket, data;
};
struct ReceiveArgs {
  BendWord continuation, socket;
  uint32_t max;
};
struct PollArgs {
  BendWord continuation, socket;
  uint32_t max, ms;
};
struct SendToArgs {
  BendWord continuation, socket, host;
  uint32_t port;
  BendWord data;
};

template <class Args>
Args* args_of(BendTask* task) { return reinterpret_cast<Args*>(reinterpret_cast<char*>(task->word) + 8); }

// Four decimal numbers of 0..255 without leading zeros; uses up the text. The errno, or 0.
int read_address(BendWorker* worker, BendWord host, uint32_t port, sockaddr_in* address) {
  Bytes text = string_encode(worker, host);
  uint32_t ip = 0;
  size_t at = 0;
  bool ok = port <= 65535;
  for (int part = 0; part < 4 && ok; ++part) {
    size_t end = at;
    while (end < text.size && text.data[end] != '.') ++end;
    uint64_t value = 0;
    ok = text::read_decimal(text.data + at, end - at, 255, &value) && (end - at == 1 || text.data[at] != '0') && (end == text.size) == (part == 3);
    ip = ip << 8 | static_cast<uint32_t>(value);
    at = end + 1;
  }
  bytes_free(&text);
  *address = {};
  address->sin_family = AF_INET;
  address->sin_port = htons(static_cast<uint16_t>(port));
  address->sin_addr.s_addr = htonl(ip);
  return ok ? 0 : EINVAL;
}

BendWord show_address(BendWorker* worker, const sockaddr_in& address) {
  uint32_t ip = ntohl(address.sin_addr.s_addr);
  Message m;
  m.number(ip >> 24).text(".").number(ip >> 16 & 255).text(".").number(ip >> 8 & 255).text(".").number(ip & 255);
  return string_decode(worker, m.data(), m.size());
}

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

// Runs an effect's attempt for the first time.
int attempt(BendWorker* worker, BendTask* task, void* answer, Retry retry) {
  return retry(worker, task, answer) == BEND_DONE ? loop_yield(worker, task) : BEND_PARKED;
}

template <class Result>
int done_beside(void* answer, BendWord handle, const Result& result) {
  *static_cast<Beside<Result>*>(answer) = {handle, result};
  return BEND_DONE;
}

template <class Result>
int fail_beside(BendWorker* worker, void* answer, BendWord handle, int error) {
  Beside<Result>* beside = static_cast<Beside<Result>*>(answer);
  beside->handle = handle;
  answer_fail(worker, &beside->result, error);
  return BEND_DONE;
}

// A bound socket, or -1 with errno.
int bound_socket(int type, const sockaddr_in& address) {
  int fd = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  int on = 1;
  bool ok = type != SOCK_STREAM || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0;
  ok = ok && bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ok = ok && (type != SOCK_STREAM || listen(fd, kBacklog) == 0);
  if (ok) return fd;
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

int answer_bound(BendWorker* worker, void* payload, void* answer, int type) {
  AddressArgs* args = static_cast<AddressArgs*>(payload);
  sockaddr_in address;
  int error = read_address(worker, args->host, args->port, &address);
  int fd = error ? -1 : bound_socket(type, address);
  ResultWord* result = static_cast<ResultWord*>(answer);
  if (fd < 0) answer_fail(worker, result, error ? error : errno);
  else answer_done(result, handle_of_fd(fd));
  return BEND_DONE;
}

int try_accept(BendWorker* worker, BendTask* task, void* answer) {
  BendWord listener = args_of<HandleArgs>(task)->socket;
  for (;;) {
    int fd = accept4(fd_of_handle(listener), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) return done_beside(answer, listener, ResultWord{1, handle_of_fd(fd), 0});
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (would_block(errno)) return loop_wait_fd(worker, task, fd_of_handle(listener), EPOLLIN, 0, try_accept);
    return fail_beside<ResultWord>(worker, answer, listener, errno);
  }
}

int finish_connect(BendWorker* worker, BendTask* task, void* answer) {
  int fd = static_cast<int>(task->value);
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  ResultWord* result = static_cast<ResultWord*>(answer);
  if (error) {
    close(fd);
    answer_fail(worker, result, error);
  } else {
    answer_done(result, handle_of_fd(fd));
  }
  return BEND_DONE;
}

// Bytes on their way out.
struct Outgoing {
  Bytes data;
  size_t sent;
  sockaddr_in to;      // of a datagram
};

Outgoing* new_outgoing(BendWorker* worker, BendTask* task, Bytes data) {
  Outgoing* out = static_cast<Outgoing*>(system_alloc(worker, sizeof(Outgoing)));
  out->data = data;
  task->pending = out;
  return out;
}

int end_outgoing(BendWorker* worker, BendTask* task, void* answer, BendWord socket, int error) {
  Outgoing* out = static_cast<Outgoing*>(task->pending);
  task->pending = nullptr;
  bytes_free(&out->data);
  free(out);
  return error ? fail_beside<ResultU32>(worker, answer, socket, error) : done_beside(answer, socket, ResultU32{1, 0, 0});
}

int try_send(BendWorker* worker, BendTask* task, void* answer) {
  BendWord socket = args_of<SendArgs>(task)->socket;
  Outgoing* out = static_cast<Outgoing*>(task->pending);
  while (out->sent < out->data.size) {
    ssize_t n = send(fd_of_handle(socket), out->data.data + out->sent, out->data.size - out->sent, MSG_NOSIGNAL);
    if (n >= 0) {
      out->sent += static_cast<size_t>(n);
      continue;
    }
    if (errno == EINTR) continue;
    if (would_block(errno)) return loop_wait_fd(worker, task, fd_of_handle(socket), EPOLLOUT, 0, try_send);
    return end_outgoing(worker, task, answer, socket, errno);
  }
  return end_outgoing(worker, task, answer, socket, 0);
}

int try_send_to(BendWorker* worker, BendTask* task, void* answer) {
  BendWord socket = args_of<SendToArgs>(task)->socket;
  Outgoing* out = static_cast<Outgoing*>(task->pending);
  for (;;) {
    ssize_t n = sendto(fd_of_handle(socket), out->data.data, out->data.size, MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&out->to), sizeof out->to);
    if (n >= 0) return end_outgoing(worker, task, answer, socket, 0);
    if (errno == EINTR) continue;
    if (would_block(errno)) return loop_wait_fd(worker, task, fd_of_handle(socket), EPOLLOUT, 0, try_send_to);
    return end_outgoing(worker, task, answer, socket, errno);
  }
}

// One receive into `buffer`: the size, or -1 with errno.
ssize_t receive(BendWord socket, uint32_t max, char* buffer, sockaddr_in* from) {
  if (max == 0) {
    errno = EINVAL;
    return -1;
  }
  socklen_t size = sizeof *from;
  ssize_t n;
  do n = recvfrom(fd_of_handle(socket), buffer, max < kMostReceived ? max : kMostReceived, 0, reinterpret_cast<sockaddr*>(from), from ? &size : nullptr);
  while (n < 0 && errno == EINTR);
  return n;
}

template <BendWord (*kValue)(BendWorker*, const char*, size_t)>
int try_receive(BendWorker* worker, BendTask* task, void* answer) {
  ReceiveArgs* args = args_of<ReceiveArgs>(task);
  char buffer[kMostReceived];
  ssize_t n = receive(args->socket, args->max, buffer, nullptr);
  if (n >= 0) return done_beside(answer, args->socket, ResultWord{1, kValue(worker, buffer, static_cast<size_t>(n)), 0});
  if (would_block(errno)) return loop_wait_fd(worker, task, fd_of_handle(args->socket), EPOLLIN, 0, try_receive<kValue>);
  return fail_beside<ResultWord>(worker, answer, args->socket, errno);
}

int try_tcp_poll(BendWorker* worker, BendTask* task, void* answer) {
  PollArgs* args = args_of<PollArgs>(task);
  char buffer[kMostReceived];
  ssize_t n = receive(args->socket, args->max, buffer, nullptr);
  if (n >= 0) return done_beside(answer, args->socket, ResultMaybe{1, 1, string_decode(worker, buffer, static_cast<size_t>(n))});
  if (!would_block(errno)) return fail_beside<ResultMaybe>(worker, answer, args->socket, errno);
  if (task->timed_out || args->ms == 0) return done_beside(answer, args->socket, ResultMaybe{1, 0, 0});
  return loop_wait_fd(worker, task, fd_of_handle(args->socket), EPOLLIN, task->deadline, try_tcp_poll);
}

int try_receive_from(BendWorker* worker, BendTask* task, void* answer) {
  ReceiveArgs* args = args_of<ReceiveArgs>(task);
  char buffer[kMostReceived];
  sockaddr_in from = {};
  ssize_t n = receive(args->socket, args->max, buffer, &from);
  if (n >= 0) {
    ResultDatagram result = {1, show_address(worker, from), ntohs(from.sin_port), string_decode(worker, buffer, static_cast<size_t>(n))};
    return done_beside(answer, args->socket, result);
  }
  if (would_block(errno)) return loop_wait_fd(worker, task, fd_of_handle(args->socket), EPOLLIN, 0, try_receive_from);
  return fail_beside<ResultDatagram>(worker, answer, args->socket, errno);
}

int try_udp_poll(BendWorker* worker, BendTask* task, void* answer) {
  ReceiveArgs* args = args_of<ReceiveArgs>(task);
  char buffer[kMostReceived];
  sockaddr_in from = {};
  ssize_t n = receive(args->socket, args->max, buffer, &from);
  if (n >= 0) {
    ResultMaybeDatagram result = {1, 1, show_address(worker, from), ntohs(from.sin_port), string_decode(worker, buffer, static_cast<size_t>(n))};
    return done_beside(answer, args->socket, result);
  }
  if (would_block(errno)) return done_beside(answer, args->socket, ResultMaybeDatagram{1, 0, 0, 0, 0});
  return fail_beside<ResultMaybeDatagram>(worker, answer, args->socket, errno);
}

}  // namespace

int bend_eff_tcp_listen(BendWorker* worker, BendTask*, void* payload, void* answer) { return answer_bound(worker, payload, answer, SOCK_STREAM); }
int bend_eff_udp_bind(BendWorker* worker, BendTask*, void* payload, void* answer) { return answer_bound(worker, payload, answer, SOCK_DGRAM); }

int bend_eff_tcp_accept(BendWorker* worker, BendTask* task, void*, void* answer) { return attempt(worker, task, answer, try_accept); }

int bend_eff_tcp_connect(BendWorker* worker, BendTask* task, void* payload, void* answer) {
  AddressArgs* args = static_cast<AddressArgs*>(payload);
  sockaddr_in address;
  int error = read_address(worker, args->host, args->port, &address);
  int fd = error ? -1 : socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd >= 0) {
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
      answer_done(static_cast<ResultWord*>(answer), handle_of_fd(fd));
      return BEND_DONE;
    }
    if (errno == EINPROGRESS || errno == EINTR) return loop_wait_fd(worker, task, fd, EPOLLOUT, 0, finish_connect);
  }
  if (!error) error = errno;
  if (fd >= 0) close(fd);
  answer_fail(worker, static_cast<ResultWord*>(answer), error);
  return BEND_DONE;
}

int bend_eff_tcp_send(BendWorker* worker, BendTask* task, void* payload, void* answer) {
  new_outgoing(worker, task, string_encode(worker, static_cast<SendArgs*>(payload)->data));
  return attempt(worker, task, answer, try_send);
}

int bend_eff_tcp_send_bytes(BendWorker* worker, BendTask* task, void* payload, void* answer) {
  SendArgs* args = static_cast<SendArgs*>(payload);
  Bytes data;
  if (!byte_list_take(worker, args->data, &data)) return fail_beside<ResultU32>(worker, answer, args->socket, EINVAL);
  new_outgoing(worker, task, data);
  return attempt(worker, task, answer, try_send);
}

int bend_eff_tcp_recv(BendWorker* worker, BendTask* task, void*, void* answer) { return attempt(worker, task, answer, try_receive<string_decode>); }
int bend_eff_tcp_recv_bytes(BendWorker* worker, BendTask* task, void*, void* answer) { return attempt(worker, task, answer, try_receive<byte_list>); }

int bend_eff_tcp_poll(BendWorker* worker, BendTask* task, void* payload, void* answer) {
  task->deadline = monotonic_ns() + static_cast<PollArgs*>(payload)->ms * kMillisecond;
  return attempt(worker, task, answer, try_tcp_poll);
}

int bend_eff_udp_send_to(BendWorker* worker, BendTask* task, void* payload, void* answer) {
  SendToArgs* args = static_cast<SendToArgs*>(payload);
  Outgoing* out = new_outgoing(worker, task, string_encode(worker, args->data));
  if (int error = read_address(worker, args->host, args->port, &out->to)) return end_outgoing(worker, task, answer, args->socket, error);
  return attempt(worker, task, answer, try_send_to);
}

int bend_eff_udp_recv_from(BendWorker* worker, BendTask* task, void*, void* answer) { return attempt(worker, task, answer, try_receive_from); }
int bend_eff_udp_poll(BendWorker* worker, BendTask* task, void*, void* answer) { return attempt(worker, task, answer, try_udp_poll); }

int bend_eff_socket_close(BendWorker*, BendTask*, void* payload, void*) {
  close(fd_of_handle(static_cast<HandleArgs*>(payload)->socket));
  return BEND_DONE;
}

int bend_eff_listener_close(BendWorker*, BendTask*, void* payload, void*) {
  close(fd_of_handle(static_cast<HandleArgs*>(payload)->socket));
  return BEND_DONE;
}
