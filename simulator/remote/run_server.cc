#include "simulator/remote/run_server.h"

#include <algorithm>
#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <chrono>
#include <exception>
#include <list>
#include <optional>
#include <string_view>

#include "cost_models/documents/problem.h"
#include "simulator/remote/run_listing.h"
#include "simulator/remote/serve_token.h"
#include "simulator/remote/served_files.h"
#include "simulator/timeline/run_signal.h"

namespace tessera {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Tcp = asio::ip::tcp;
using std::chrono::seconds;

constexpr std::size_t kMostConnections = 32, kPiece = std::size_t{64} << 10;
constexpr std::uint32_t kMostHeader = 8192;
constexpr seconds kRequestTime{10}, kPieceTime{30}, kIdleTime{60};

/// What is answered: a text, or a part of a file.
struct Answer {
  http::status status = http::status::ok;
  std::string text;
  std::optional<ServedFile> file;
  std::int64_t first = 0, size = 0;  // of the file
};

Answer refusal(http::status status) {
  return {.status = status, .text = std::string(http::obsolete_reason(status)) + "\n"};
}

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size() && value >= 0;
  return whole ? std::optional(value) : std::nullopt;
}

/// "bytes=FIRST-LAST" or "bytes=FIRST-"; all else is no range that is known, and is not heeded.
Answer part_of(ServedFile file, std::string_view range) {
  const std::int64_t size = file.file().size;
  Answer whole{.file = std::move(file), .size = size};
  constexpr std::string_view kUnit = "bytes=";
  const std::size_t dash = range.find('-');
  if (!range.starts_with(kUnit) || dash == range.npos) return whole;
  const auto first = number_of(range.substr(kUnit.size(), dash - kUnit.size()));
  const std::string_view end = range.substr(dash + 1);
  const auto last = end.empty() ? std::optional(size - 1) : number_of(end);
  if (!first || !last || (*last < *first && !end.empty())) return whole;
  if (*first >= size) {
    whole.status = http::status::range_not_satisfiable;
    whole.first = whole.size = 0;
    return whole;
  }
  whole.status = http::status::partial_content;
  whole.first = *first;
  whole.size = std::min(*last, size - 1) - *first + 1;
  return whole;
}

std::string_view view_of(beast::string_view text) { return {text.data(), text.size()}; }

/// Tells the run, and says why where nobody hears of it.
Answer answer_to_signal(const std::filesystem::path& run, RunSignal signal) {
  try {
    send_signal(run, signal, "a window on another host");
    return {.text = std::string(name_of(signal)) + "\n"};
  } catch (const Error& error) {
    return {.status = http::status::conflict, .text = std::string(error.what()) + "\n"};
  }
}

}  // namespace

struct RunServer::State {
  struct Connection {
    beast::tcp_stream stream;
    bool trusted = false;  // it has shown the token
  };
  using Request = http::request<http::empty_body>;

  asio::io_context context{1};
  Tcp::acceptor acceptor{context};
  asio::signal_set signals{context, SIGINT, SIGTERM};
  std::string token;
  std::vector<ServedRun> runs;
  ServeRights rights = ServeRights::read;
  std::list<Connection> connections;  // oldest first

  Answer answer_to(const Request& request) const;
  Answer answer_or_fault(const Request& request) const;
  Answer answer_in_run(const Request& request, const std::filesystem::path& folder,
                       std::string_view rest) const;
  bool has_token(const Request& request) const;
  bool make_room();
  asio::awaitable<void> accept();
  asio::awaitable<void> serve(std::list<Connection>::iterator connection);
  asio::awaitable<bool> send(Connection& connection, const Request& request, Answer answer);
};

bool RunServer::State::has_token(const Request& request) const {
  constexpr std::string_view kScheme = "Bearer ";
  const std::string_view given = view_of(request[http::field::authorization]);
  return given.starts_with(kScheme) && same_token(given.substr(kScheme.size()), token);
}

Answer RunServer::State::answer_to(const Request& request) const {
  if (!has_token(request)) return refusal(http::status::unauthorized);
  const bool reads = request.method() == http::verb::get;
  if (!reads && request.method() != http::verb::post) {
    return refusal(http::status::method_not_allowed);
  }
  constexpr std::string_view kRuns = "/runs";
  std::string_view path = view_of(request.target());
  if (path == kRuns) {
    if (!reads) return refusal(http::status::method_not_allowed);
    std::vector<std::string> names;
    for (const ServedRun& run : runs) names.push_back(run.name);
    return {.text = runs_json(names)};
  }
  if (!path.starts_with("/runs/")) return refusal(http::status::not_found);
  path.remove_prefix(kRuns.size() + 1);
  const std::size_t slash = path.find('/');
  const auto number = number_of(path.substr(0, slash));
  if (!number || static_cast<std::size_t>(*number) >= runs.size()) {
    return refusal(http::status::not_found);
  }
  return answer_in_run(request, runs[static_cast<std::size_t>(*number)].folder,
                       path.substr(std::min(slash, path.size())));
}

/// `rest` is the path behind the run's number.
Answer RunServer::State::answer_in_run(const Request& request, const std::filesystem::path& folder,
                                       std::string_view rest) const {
  constexpr std::string_view kSignals = "/signals/";
  const bool reads = request.method() == http::verb::get;
  if (rest.starts_with(kSignals)) {
    const auto signal = run_signal_from(rest.substr(kSignals.size()));
    if (!signal) return refusal(http::status::not_found);
    if (reads) return refusal(http::status::method_not_allowed);
    if (rights == ServeRights::read) return refusal(http::status::forbidden);
    return answer_to_signal(folder, *signal);
  }
  if (!reads) return refusal(http::status::method_not_allowed);
  if (rest.empty()) return {.text = to_json(list_run(folder))};
  const ServedName* name = find_served(rest.substr(1));
  if (name == nullptr) return refusal(http::status::not_found);
  auto file = ServedFile::open(folder, *name);
  if (!file) return refusal(http::status::not_found);
  return part_of(*std::move(file), view_of(request[http::field::range]));
}

/// A folder that cannot be read any more, say, costs one answer and not the connection.
Answer RunServer::State::answer_or_fault(const Request& request) const {
  try {
    return answer_to(request);
  } catch (const std::exception& fault) {
    return {.status = http::status::internal_server_error,
            .text = std::string(fault.what()) + "\n"};
  }
}

/// False where every connection has shown the token.
bool RunServer::State::make_room() {
  if (connections.size() < kMostConnections) return true;
  const auto oldest = std::find_if(connections.begin(), connections.end(),
                                   [](const Connection& each) { return !each.trusted; });
  if (oldest == connections.end()) return false;
  oldest->trusted = true;  // it is cut off once
  oldest->stream.close();
  return true;
}

asio::awaitable<void> RunServer::State::accept() {
  while (acceptor.is_open()) {
    beast::error_code error;
    Tcp::socket socket =
        co_await acceptor.async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::operation_aborted) co_return;
    if (error) {  // no descriptors, say: they come back
      asio::steady_timer pause(context, std::chrono::milliseconds(100));
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
      continue;
    }
    if (!make_room()) continue;  // the socket is closed
    connections.push_back({beast::tcp_stream(std::move(socket))});
    asio::co_spawn(context, serve(std::prev(connections.end())), asio::detached);
  }
}

asio::awaitable<void> RunServer::State::serve(std::list<Connection>::iterator connection) {
  beast::flat_buffer buffer(kMostHeader);
  bool goes_on = true;
  while (goes_on) {
    http::request_parser<http::empty_body> parser;
    parser.header_limit(kMostHeader);
    beast::error_code error;
    connection->stream.expires_after(connection->trusted ? kIdleTime : kRequestTime);
    co_await http::async_read(connection->stream, buffer, parser,
                              asio::redirect_error(asio::use_awaitable, error));
    if (error && parser.is_header_done()) {
      co_await send(*connection, parser.get(), refusal(http::status::payload_too_large));
    }
    if (error == http::error::header_limit || error == http::error::buffer_overflow) {
      co_await send(*connection, {}, refusal(http::status::request_header_fields_too_large));
    }
    if (error) break;
    const Request request = parser.release();
    connection->trusted = connection->trusted || has_token(request);
    goes_on = co_await send(*connection, request, answer_or_fault(request));
  }
  connection->stream.close();
  connections.erase(connection);
}

/// Whether the connection may be asked again.
asio::awaitable<bool> RunServer::State::send(Connection& connection, const Request& request,
                                             Answer answer) {
  http::response<http::empty_body> head(answer.status, 11);
  const bool refused = answer.status == http::status::unauthorized ||
                       answer.status == http::status::payload_too_large ||
                       answer.status == http::status::request_header_fields_too_large;
  const bool keep = !refused && request.keep_alive();
  head.keep_alive(keep);
  head.set(http::field::cache_control, "no-store");
  if (answer.status == http::status::method_not_allowed) {
    const bool signal = view_of(request.target()).find("/signals/") != std::string_view::npos;
    head.set(http::field::allow, signal ? "POST" : "GET");
  }
  if (answer.status == http::status::unauthorized) {
    head.set(http::field::www_authenticate, "Bearer");
  }
  const std::int64_t length =
      answer.file ? answer.size : static_cast<std::int64_t>(answer.text.size());
  head.content_length(static_cast<std::uint64_t>(length));
  if (answer.file) {
    const std::string whole = "/" + std::to_string(answer.file->file().size);
    head.set(http::field::accept_ranges, "bytes");
    if (answer.status == http::status::partial_content) {
      head.set(http::field::content_range, "bytes " + std::to_string(answer.first) + "-" +
                                               std::to_string(answer.first + answer.size - 1) +
                                               whole);
    } else if (answer.status == http::status::range_not_satisfiable) {
      head.set(http::field::content_range, "bytes *" + whole);
    }
  }
  http::response_serializer<http::empty_body> serializer(head);
  beast::error_code error;
  connection.stream.expires_after(kPieceTime);
  co_await http::async_write_header(connection.stream, serializer,
                                    asio::redirect_error(asio::use_awaitable, error));
  if (request.method() == http::verb::head) co_return keep && !error;
  std::string piece = std::move(answer.text);
  for (std::int64_t sent = 0; !error && sent < length;) {
    if (answer.file) {
      const auto wanted = std::min<std::int64_t>(kPiece, length - sent);
      piece = answer.file->read(answer.first + sent, static_cast<std::size_t>(wanted));
      if (piece.empty()) co_return false;  // it became shorter: the other end sees that
    }
    connection.stream.expires_after(kPieceTime);
    co_await asio::async_write(connection.stream, asio::buffer(piece),
                               asio::redirect_error(asio::use_awaitable, error));
    sent += static_cast<std::int64_t>(piece.size());
  }
  co_return keep && !error;
}

RunServer::RunServer(int port, std::string token, std::vector<ServedRun> runs, ServeRights rights)
    : state_(std::make_unique<State>()) {
  state_->token = std::move(token);
  state_->runs = std::move(runs);
  state_->rights = rights;
  const Tcp::endpoint here(asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(port));
  beast::error_code error;
  state_->acceptor.open(here.protocol(), error);
  // So that a server that is started again finds its port; two never share it.
  if (!error) state_->acceptor.set_option(Tcp::acceptor::reuse_address(true), error);
  if (!error) state_->acceptor.bind(here, error);
  if (!error) state_->acceptor.listen(64, error);
  if (error) {
    throw Error(ExitCode::io,
                "cannot listen at 127.0.0.1:" + std::to_string(port) + ": " + error.message());
  }
}

RunServer::~RunServer() = default;

int RunServer::port() const { return state_->acceptor.local_endpoint().port(); }

void RunServer::run() {
  state_->signals.async_wait([this](const beast::error_code& error, int) {
    if (!error) stop();
  });
  asio::co_spawn(state_->context, state_->accept(), asio::detached);
  state_->context.run();
}

void RunServer::stop() { state_->context.stop(); }

}  // namespace tessera
