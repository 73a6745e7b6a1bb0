#include "simulator/remote/run_client.h"

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <chrono>
#include <exception>
#include <string_view>

namespace tessera {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Tcp = asio::ip::tcp;

constexpr std::chrono::seconds kRequestTime{20};
constexpr std::chrono::milliseconds kLook{50};

/// FIRST of "bytes FIRST-LAST/SIZE"; -1 where it is something else.
std::int64_t first_of(beast::string_view field) {
  constexpr std::string_view kUnit = "bytes ";
  std::string_view text(field.data(), field.size());
  if (!text.starts_with(kUnit)) return -1;
  text.remove_prefix(kUnit.size());
  std::int64_t first = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), first);
  return error == std::errc{} && end != text.data() + text.size() && *end == '-' ? first : -1;
}

}  // namespace

struct RunClient::State {
  State(int to, std::string with) : port(to), token(std::move(with)) {}

  int port;
  std::string token;
  asio::io_context context{1};
  std::optional<beast::tcp_stream> stream;
  beast::flat_buffer buffer;

  http::request<http::empty_body> request(http::verb method, const std::string& path) const;
  asio::awaitable<RunReply> ask(http::request<http::empty_body> request, std::size_t most);
  RunReply reply_to(http::request<http::empty_body> request, std::size_t most,
                    const std::stop_token& stop);
};

http::request<http::empty_body> RunClient::State::request(http::verb method,
                                                          const std::string& path) const {
  http::request<http::empty_body> request(method, path, 11);
  request.set(http::field::host, "127.0.0.1:" + std::to_string(port));
  request.set(http::field::authorization, "Bearer " + token);
  return request;
}

/// Throws boost::system::system_error.
asio::awaitable<RunReply> RunClient::State::ask(http::request<http::empty_body> request,
                                                std::size_t most) {
  if (!stream) {
    buffer.clear();
    stream.emplace(context);
    stream->expires_after(kRequestTime);
    const Tcp::endpoint there(asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(port));
    co_await stream->async_connect(there, asio::use_awaitable);
  }
  stream->expires_after(kRequestTime);
  co_await http::async_write(*stream, request, asio::use_awaitable);
  http::response_parser<http::string_body> parser;
  parser.header_limit(8192);
  parser.body_limit(most);
  co_await http::async_read(*stream, buffer, parser, asio::use_awaitable);
  auto answer = parser.release();
  RunReply reply{.status = static_cast<int>(answer.result_int())};
  if (reply.status == 206) reply.first = first_of(answer[http::field::content_range]);
  if (!answer.keep_alive()) stream.reset();
  reply.body = std::move(answer.body());
  co_return reply;
}

RunClient::RunClient(int port, std::string token)
    : state_(std::make_unique<State>(port, std::move(token))) {}

RunClient::~RunClient() = default;

RunReply RunClient::State::reply_to(http::request<http::empty_body> request, std::size_t most,
                                    const std::stop_token& stop) {
  RunReply reply;
  bool ended = false;
  const auto take = [&](const std::exception_ptr& thrown, RunReply given) {
    ended = true;
    reply = std::move(given);
    if (!thrown) return;
    try {
      std::rethrow_exception(thrown);
    } catch (const boost::system::system_error& error) {
      const bool late = error.code() == beast::error::timeout;
      reply.fault = late ? "took longer than 20 s" : error.code().message();
    }
  };
  context.restart();
  asio::co_spawn(context, ask(std::move(request), most), take);
  while (!ended) {
    if (stop.stop_requested() && stream) stream->cancel();
    context.run_for(kLook);
  }
  if (!reply.fault.empty()) stream.reset();
  return reply;
}

RunReply RunClient::get(const std::string& path, const std::optional<ByteRange>& range,
                        std::size_t most, const std::stop_token& stop) {
  auto request = state_->request(http::verb::get, path);
  if (range) {
    request.set(http::field::range, "bytes=" + std::to_string(range->first) + "-" +
                                        std::to_string(range->first + range->size - 1));
  }
  return state_->reply_to(std::move(request), most, stop);
}

RunReply RunClient::post(const std::string& path, std::size_t most, const std::stop_token& stop) {
  auto request = state_->request(http::verb::post, path);
  request.content_length(0);
  return state_->reply_to(std::move(request), most, stop);
}

}  // namespace tessera
