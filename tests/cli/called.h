// The torch-free program, called as a user does, and what it answered.
#pragma once

#include <sys/wait.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <string>

namespace tessera {

struct Called {
  int code = -1;
  double seconds = 0;  // by the clock
  std::string out;     // stdout, and stderr where asked
};

/// `tessera WORDS STREAMS` of a shell, behind `before` ("timeout 20 ").
inline Called call(const std::string& words, const std::string& streams = "2>&1",
                   const std::string& before = "") {
  const std::string command = before + TESSERA_BINARY_DIR + "/cli/tessera " + words + " " + streams;
  Called called;
  const auto start = std::chrono::steady_clock::now();
  FILE* const pipe = popen(command.c_str(), "r");
  std::array<char, 4096> piece{};
  while (const std::size_t read = fread(piece.data(), 1, piece.size(), pipe)) {
    called.out.append(piece.data(), read);
  }
  const int status = pclose(pipe);
  called.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  called.seconds = took.count();
  return called;
}

/// A plan that is quickly made.
inline const std::string kAsk = "plan --model qwen2.5-0.5b --cluster h100-8 --workload grpo-7b-1k ";

}  // namespace tessera
