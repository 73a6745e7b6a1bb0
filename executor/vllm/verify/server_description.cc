#include "executor/vllm/verify/server_description.h"

#include <nlohmann/json.hpp>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/dtype.h"
#include "executor/http/http.h"

namespace tessera {
namespace {

using nlohmann::json;

/// What a server lacks that does not know what it is asked.
constexpr const char* kWithPackage =
    "; the server must have tessera's package: `pip install integrations/vllm` in its Python, and "
    "`VLLM_SERVER_DEV_MODE=1 vllm serve MODEL --worker-extension-cls "
    "tessera_vllm.worker.WeightReceiver`";

std::map<std::string, ServedParameter> parameters_of(const json& worker) {
  std::map<std::string, ServedParameter> parameters;
  for (const auto& [name, told] : worker.at("parameters").items()) {
    const auto type = told.at(0).get<std::string>();
    const auto known = dtype_from(type);
    parameters[name] = {known ? std::string(name_of(*known)) : type,
                        told.at(1).get<std::vector<std::int64_t>>()};
  }
  return parameters;
}

[[noreturn]] void fail(const std::string& address, const std::string& what) {
  throw Error(ExitCode::missing, "vLLM at " + address + ": " + what);
}

/// What each worker says of itself.
json workers_of(const std::string& address, double timeout_s) {
  HttpConnection connection(address);
  const HttpReply asleep = connection.get("/is_sleeping", timeout_s);
  if (!asleep.ok()) fail(address, "GET /is_sleeping: " + in_words(asleep) + kWithPackage);
  if (json::parse(asleep.body).at("is_sleeping").get<bool>()) {
    fail(address, "it sleeps and holds no weights; POST /wake_up wakes it");
  }
  const json body{{"method", "tessera_describe"}};
  const HttpReply reply = connection.post("/collective_rpc", body.dump(), timeout_s);
  const std::string package = reply.fault == HttpFault::none ? kWithPackage : "";
  if (!reply.ok()) fail(address, "its workers' description: " + in_words(reply) + package);
  return json::parse(reply.body).at("results");
}

}  // namespace

ServerDescription describe_server(VllmServer& server, double timeout_s) {
  server.await_ready(0);
  ServerDescription made;
  try {
    for (const json& worker : workers_of(server.address(), timeout_s)) {
      if (worker.contains("error")) fail(server.address(), worker.at("error").get<std::string>());
      made.layout.tp = worker.at("tensor_parallel_size").get<int>();
      made.layout.pp = worker.at("pipeline_parallel_size").get<int>();
      made.config = worker.at("config").get<std::string>();
      made.parameters.push_back(parameters_of(worker));
    }
  } catch (const json::exception&) {
    throw Error(ExitCode::missing,
                "vLLM at " + server.address() +
                    " has a package of another version of tessera: install integrations/vllm anew");
  }
  const std::int64_t expected = std::int64_t{made.layout.tp} * made.layout.pp;
  if (std::ssize(made.parameters) != expected) {
    throw Error(ExitCode::missing,
                "vLLM at " + server.address() + " has " + std::to_string(made.parameters.size()) +
                    " workers that answer, expected " + std::to_string(expected));
  }
  return made;
}

}  // namespace tessera
