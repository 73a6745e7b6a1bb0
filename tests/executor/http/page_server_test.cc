// One page, asked for by a client of this project and by raw bytes.
#include "executor/http/page_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string_view>
#include <thread>
#include <vector>

#include "cost_models/documents/problem.h"
#include "executor/http/http.h"

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// Everything that the server says to these bytes.
std::string answer_to(std::string_view request, int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string said;
  if (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
      ::write(socket, request.data(), request.size()) > 0) {
    char part[4096];
    for (ssize_t got = 0; (got = ::read(socket, part, sizeof part)) > 0;) {
      said.append(part, static_cast<std::size_t>(got));
    }
  }
  ::close(socket);
  return said;
}

TEST(PageServer, AnswersWithTheNewestPageAndItsType) {
  const int port = free_port();
  PageServer server(port, "/metrics", "text/plain; version=0.0.4");
  server.set("one 1\n");
  server.set("two 2\n");
  const std::string said =
      answer_to("GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", port);
  EXPECT_THAT(said, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(said, HasSubstr("Content-Type: text/plain; version=0.0.4\r\n"));
  EXPECT_THAT(said, testing::EndsWith("\r\n\r\ntwo 2\n"));
  HttpConnection client("http://127.0.0.1:" + std::to_string(port));
  EXPECT_EQ(client.get("/metrics", 5).body, "two 2\n");
  EXPECT_EQ(client.get("/", 5).status, 404);
}

TEST(PageServer, SaysThatAPortIsTaken) {
  const int port = free_port();
  const PageServer server(port, "/metrics", "text/plain");
  try {
    const PageServer second(port, "/metrics", "text/plain");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::io);
    EXPECT_THAT(error.what(), HasSubstr("127.0.0.1:" + std::to_string(port)));
  }
}

/// It may end as soon as it has begun, and a page may change while others read it.
TEST(PageServer, EndsAtAnyTime) {
  const int port = free_port();
  for (int i = 0; i < 50; ++i) PageServer(port, "/metrics", "text/plain").set("x");
  PageServer server(port, "/metrics", "text/plain");
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 4; ++reader) {
    readers.emplace_back([port] {
      HttpConnection client("http://127.0.0.1:" + std::to_string(port));
      for (int i = 0; i < 25; ++i) {
        const HttpReply reply = client.get("/metrics", 10);
        EXPECT_EQ(reply.status, 200) << in_words(reply);
        EXPECT_EQ(reply.body.find_first_not_of(reply.body.substr(0, 1)), std::string::npos)
            << "two pages in one";
      }
    });
  }
  for (int i = 0; i < 2000; ++i) server.set(std::string(10'000, static_cast<char>('a' + i % 26)));
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace tessera
