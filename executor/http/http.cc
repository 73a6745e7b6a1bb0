#include "executor/http/http.h"

#include <arpa/inet.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <random>
#include <string_view>
#include <vector>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

constexpr std::size_t kQuotedBytes = 400;
/// Ports above those that well-known services have; a user may bind them.
constexpr int kFirstPort = 10'000, kLastPort = 65'535;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// httplib tells a read that timed out and a connection that was closed by one error.
HttpReply reply_of(const httplib::Result& result, double seconds, double timeout_s) {
  if (result) return {.status = result->status, .body = result->body};
  if (result.error() == httplib::Error::Connection) return {.fault = HttpFault::refused};
  return {.fault = seconds >= timeout_s ? HttpFault::timed_out : HttpFault::closed};
}

/// The unprivileged ports that no outgoing connection is given (Linux, ip-sysctl).
std::vector<int> ports_of_servers() {
  int first = 0, last = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first >> last;
  std::vector<int> ports;
  for (int port = kFirstPort; port <= kLastPort; ++port) {
    if (port < first || port > last) ports.push_back(port);
  }
  return ports;
}

/// The port that a socket of the loopback interface gets where it asks for `port` (0: any); 0, with
/// errno, where it is held.
int bound_port(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return 0;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const bool bound = ::bind(socket, any, length) == 0 && ::getsockname(socket, any, &length) == 0;
  const int reason = errno;
  ::close(socket);
  errno = reason;
  return bound ? ntohs(address.sin_port) : 0;
}

}  // namespace

struct HttpConnection::Client {
  explicit Client(const std::string& server) : http(server) {
    http.set_keep_alive(true);
    http.set_tcp_nodelay(true);
    http.set_connection_timeout(10);
  }

  template <class Call>
  HttpReply timed(double timeout_s, Call&& call) {
    const auto whole = static_cast<time_t>(timeout_s);
    http.set_read_timeout(whole, std::lround((timeout_s - static_cast<double>(whole)) * 1e6));
    http.set_write_timeout(whole + 1);
    const Clock::time_point start = Clock::now();
    const httplib::Result result = call();
    return reply_of(result, seconds_since(start), timeout_s);
  }

  httplib::Client http;
};

std::string in_words(const HttpReply& reply) {
  switch (reply.fault) {
    case HttpFault::refused:
      return "refused the connection";
    case HttpFault::timed_out:
      return "did not answer in time";
    case HttpFault::closed:
      return "closed the connection";
    case HttpFault::too_long:
      return "answered more than may be";
    case HttpFault::none:
      break;
  }
  return "answered " + std::to_string(reply.status) + ": " + reply.body.substr(0, kQuotedBytes);
}

HttpConnection::HttpConnection(const std::string& server)
    : client_(std::make_unique<Client>(server)) {}
HttpConnection::~HttpConnection() = default;

HttpReply HttpConnection::get(const std::string& path, double timeout_s) {
  return client_->timed(timeout_s, [&] { return client_->http.Get(path); });
}

HttpReply HttpConnection::post(const std::string& path, const std::string& body, double timeout_s,
                               std::size_t longest) {
  std::string received;
  bool too_long = false;
  httplib::Request request;
  request.method = "POST";
  request.path = path;
  request.headers = {{"Content-Type", "application/json"}, {"Accept", "application/json"}};
  request.body = body;
  request.content_receiver = [&](const char* data, std::size_t size, std::uint64_t, std::uint64_t) {
    too_long = size > longest - received.size();
    if (!too_long) received.append(data, size);
    return !too_long;
  };
  HttpReply reply = client_->timed(timeout_s, [&] { return client_->http.send(request); });
  if (too_long) return {.fault = HttpFault::too_long};
  if (reply.fault == HttpFault::none) reply.body = std::move(received);
  return reply;
}

void HttpConnection::stop() { client_->http.stop(); }

bool is_server_address(const std::string& server) {
  constexpr std::string_view kScheme = "http://", kDigits = "0123456789";
  const std::size_t colon = server.rfind(':');
  if (!server.starts_with(kScheme) || colon <= kScheme.size()) return false;
  const std::string_view text = server, port = text.substr(colon + 1);
  const std::string_view host = text.substr(kScheme.size(), colon - kScheme.size());
  const auto named = [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '-'; };
  return std::all_of(host.begin(), host.end(), named) && !port.empty() && port.size() <= 5 &&
         port.find_first_not_of(kDigits) == std::string_view::npos;
}

int free_port() {
  std::vector<int> ports = ports_of_servers();
  std::shuffle(ports.begin(), ports.end(), std::random_device());
  ports.push_back(0);  // any: where outgoing connections have the whole range, or all is taken
  std::string reason;
  for (const int port : ports) {
    const int bound = bound_port(port);
    if (bound > 0) return bound;
    reason = std::strerror(errno);
  }
  throw Error(ExitCode::io, "no free port of 127.0.0.1: " + reason);
}

}  // namespace tessera
