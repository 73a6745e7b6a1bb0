// Requests by HTTP/1.1 to one server, one at a time, without TLS and without following redirects.
//
// A connection is kept from one request to the next and made anew where the server has closed it.
// One thread per connection; different connections are independent. Seconds and bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace tessera {

/// How a request ended that has no reply.
enum class HttpFault : std::uint8_t { none, refused, timed_out, closed, too_long };

struct HttpReply {
  HttpFault fault = HttpFault::none;
  int status = 0;  // 0 where there is a fault
  std::string body;

  bool ok() const { return status >= 200 && status < 300; }
};

/// "refused the connection", "did not answer in time", "closed the connection", "answered more than
/// may be", or the status and the beginning of the body.
std::string in_words(const HttpReply& reply);

class HttpConnection {
 public:
  /// `server` as http://HOST:PORT. Connects with the first request.
  explicit HttpConnection(const std::string& server);
  ~HttpConnection();

  HttpReply get(const std::string& path, double timeout_s);
  /// `body` is JSON. `timeout_s` is for each byte of the reply, of which at most `longest` are
  /// read.
  HttpReply post(const std::string& path, const std::string& body, double timeout_s,
                 std::size_t longest = std::string::npos);
  /// Ends the request that is on its way, if there is one, from any thread.
  void stop();

 private:
  struct Client;
  std::unique_ptr<Client> client_;
};

/// Whether `server` reads http://HOST:PORT.
bool is_server_address(const std::string& server);
/// A port of the loopback interface that nobody holds now, for a server that binds it some seconds
/// later. It lies outside the range that the kernel gives to outgoing connections
/// (ip_local_port_range), since one of those could take it meanwhile. Throws Error (io) where there
/// is none.
int free_port();

}  // namespace tessera
