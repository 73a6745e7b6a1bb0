// Ports for servers that this project starts.
#include "executor/http/http.h"

#include <gtest/gtest.h>

#include <fstream>

namespace tessera {
namespace {

// A server binds its port seconds after it was chosen; from this range any connection of another
// program may have got it by then.
TEST(FreePort, IsNoneThatOutgoingConnectionsAreGiven) {
  int first = 0, last = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first >> last;
  ASSERT_LT(first, last);
  if (first <= 10'000 && last >= 65'535) GTEST_SKIP() << "outgoing connections have every port";
  for (int i = 0; i < 100; ++i) {
    const int port = free_port();
    EXPECT_TRUE(port < first || port > last) << port;
    EXPECT_GE(port, 1024);
  }
}

}  // namespace
}  // namespace tessera
