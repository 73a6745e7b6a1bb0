// Asks a server of runs (run_server.h), or whoever listens in its place, and believes nobody.
//
// One connection, kept from one request to the next. Every request has a limit of time in all and
// of bytes. One thread; a stop token ends the request that is on its way within 50 ms.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>  // boost/asio.hpp lacks it

namespace tessera {

/// `fault` is empty where the server answered whole.
struct RunReply {
  int status = 0;
  std::string body;
  std::int64_t first = 0;  // of a part (206): where it begins
  std::string fault;       // "Connection refused", "took longer than 20 s"
};

struct ByteRange {
  std::int64_t first = 0, size = 0;
};

class RunClient {
 public:
  RunClient(int port, std::string token);
  ~RunClient();

  /// The body has at most `most` bytes.
  RunReply get(const std::string& path, const std::optional<ByteRange>& range, std::size_t most,
               const std::stop_token& stop);
  /// Asks for something to be done, without a body.
  RunReply post(const std::string& path, std::size_t most, const std::stop_token& stop);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera
