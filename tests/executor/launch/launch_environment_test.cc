// One fixture per launcher: the variables as the launcher sets them.
#include "executor/launch/launch_environment.h"

#include <gmock/gmock.h>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

const EnvironmentVariables kTorchrun = {{"RANK", "5"},
                                        {"WORLD_SIZE", "8"},
                                        {"LOCAL_RANK", "1"},
                                        {"LOCAL_WORLD_SIZE", "4"},
                                        {"GROUP_RANK", "1"},
                                        {"MASTER_ADDR", "10.0.0.7"},
                                        {"MASTER_PORT", "29500"},
                                        {"OMP_NUM_THREADS", "1"},
                                        {"TORCHELASTIC_RUN_ID", "none"},
                                        {"TORCHELASTIC_RESTART_COUNT", "2"},
                                        {"TORCHELASTIC_MAX_RESTARTS", "3"},
                                        {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
const EnvironmentVariables kMpirun = {
    {"OMPI_COMM_WORLD_RANK", "3"},       {"OMPI_COMM_WORLD_SIZE", "4"},
    {"OMPI_COMM_WORLD_LOCAL_RANK", "3"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
    {"OMPI_UNIVERSE_SIZE", "2"},         {"PMIX_RANK", "3"},
    {"PMIX_NAMESPACE", "3405578241"}};
const EnvironmentVariables kSrun = {{"SLURM_PROCID", "9"},
                                    {"SLURM_NTASKS", "16"},
                                    {"SLURM_LOCALID", "1"},
                                    {"SLURM_NODEID", "1"},
                                    {"SLURM_JOB_ID", "1234567"},
                                    {"SLURM_STEP_ID", "0"},
                                    {"SLURM_JOB_NODELIST", "gnode[10,20-22]"}};
const EnvironmentVariables kPods = {{"PET_NNODES", "2"},
                                    {"PET_NODE_RANK", "1"},
                                    {"PET_NPROC_PER_NODE", "1"},
                                    {"PET_MASTER_ADDR", "job-0.job"},
                                    {"PET_MASTER_PORT", "23456"}};

EnvironmentVariables together(std::initializer_list<EnvironmentVariables> parts) {
  EnvironmentVariables all;
  for (const EnvironmentVariables& part : parts) all.insert(part.begin(), part.end());
  return all;
}

LaunchEnvironment read(const EnvironmentVariables& variables) {
  Problems problems;
  const LaunchEnvironment made = read_launch_environment(variables, problems);
  for (const Problem& problem : problems) ADD_FAILURE() << to_string(problem);
  return made;
}

/// Names of the variables that are complained about.
std::vector<std::string> refused(const EnvironmentVariables& variables) {
  Problems problems;
  read_launch_environment(variables, problems);
  std::vector<std::string> names;
  for (const Problem& problem : problems) names.push_back(problem.place);
  return names;
}

EnvironmentVariables with(EnvironmentVariables variables, const std::string& name,
                          const std::string& value) {
  variables[name] = value;
  return variables;
}
EnvironmentVariables without(EnvironmentVariables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

TEST(LaunchEnvironment, OfTorchrun) {
  EXPECT_EQ(read(kTorchrun),
            (LaunchEnvironment{Launcher::torchrun, 5, 8, 1, 4, "10.0.0.7", 29500, true, "none/2"}));
}

TEST(LaunchEnvironment, OfRayWhichSpeaksTorchrunsLanguageWithoutAnAgent) {
  const LaunchEnvironment made = read({{"RANK", "1"},
                                       {"WORLD_SIZE", "2"},
                                       {"LOCAL_RANK", "0"},
                                       {"LOCAL_WORLD_SIZE", "1"},
                                       {"MASTER_ADDR", "head"},
                                       {"MASTER_PORT", "6000"}});
  EXPECT_EQ(made.launcher, Launcher::torchrun);
  EXPECT_FALSE(made.agent_hosts_store);
}

TEST(LaunchEnvironment, OfOpenMpi) {
  EXPECT_EQ(read(kMpirun),
            (LaunchEnvironment{Launcher::mpirun, 3, 4, 3, 4, "", 0, false, "3405578241"}));
  const LaunchEnvironment given =
      read(together({kMpirun, {{"MASTER_ADDR", "host"}, {"MASTER_PORT", "1234"}}}));
  EXPECT_EQ(given.master_host, "host");
  EXPECT_EQ(given.master_port, 1234);
}

TEST(LaunchEnvironment, OfSlurm) {
  EXPECT_EQ(read(kSrun),
            (LaunchEnvironment{Launcher::srun, 9, 16, 1, 0, "gnode10", 24567, false, "1234567/0"}));
}

TEST(LaunchEnvironment, OfOneProcessPerPod) {
  EXPECT_EQ(read(kPods),
            (LaunchEnvironment{Launcher::pods, 1, 2, 0, 1, "job-0.job", 23456, false, ""}));
}

TEST(LaunchEnvironment, OfTorchrunInAPodTakesThePodsMeetingPoint) {
  const LaunchEnvironment made =
      read(together({without(without(kTorchrun, "MASTER_ADDR"), "MASTER_PORT"), kPods}));
  EXPECT_EQ(made.launcher, Launcher::torchrun);
  EXPECT_EQ(made.rank, 5);
  EXPECT_EQ(made.master_host, "job-0.job");
  EXPECT_EQ(made.master_port, 23456);
}

TEST(LaunchEnvironment, WithoutAnyLauncherIsOneRank) {
  EXPECT_EQ(read({{"HOME", "/root"}, {"MASTER_ADDR", "left-over"}}), LaunchEnvironment{});
}

TEST(LaunchEnvironment, TakesTheInnermostCompleteFamily) {
  EXPECT_EQ(read(together({kTorchrun, kMpirun, kSrun})).launcher, Launcher::torchrun);
  EXPECT_EQ(read(together({kMpirun, kSrun, kPods})).launcher, Launcher::mpirun);
  EXPECT_EQ(read(together({kSrun, kPods})).launcher, Launcher::srun);
  // Incomplete ones stand back for a complete one.
  EXPECT_EQ(read(together({without(kTorchrun, "WORLD_SIZE"), kMpirun})).launcher, Launcher::mpirun);
  EXPECT_EQ(read(together({without(kMpirun, "OMPI_COMM_WORLD_SIZE"), kSrun})).launcher,
            Launcher::srun);
}

TEST(LaunchEnvironment, RefusesAnIncompleteFamilyAndNamesWhatIsMissing) {
  EXPECT_THAT(refused({{"RANK", "0"}}),
              ElementsAre("WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"));
  EXPECT_THAT(refused(without(kTorchrun, "MASTER_PORT")), ElementsAre("MASTER_PORT"));
  EXPECT_THAT(refused(with(kTorchrun, "RANK", "")), ElementsAre("RANK"));
  EXPECT_THAT(refused(without(kMpirun, "OMPI_COMM_WORLD_RANK")),
              ElementsAre("OMPI_COMM_WORLD_RANK"));
  EXPECT_THAT(refused({{"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "1"}}),
              ElementsAre("SLURM_PROCID", "SLURM_LOCALID", "SLURM_JOB_NODELIST"));
  EXPECT_THAT(refused(without(kPods, "PET_NODE_RANK")), ElementsAre("PET_NODE_RANK"));

  Problems problems;
  read_launch_environment({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}}, problems);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_THAT(to_string(problems[0]), HasSubstr("RANK, WORLD_SIZE, LOCAL_RANK"));
}

TEST(LaunchEnvironment, RefusesAFamilyThatContradictsItself) {
  EXPECT_THAT(refused(with(kTorchrun, "RANK", "8")), ElementsAre("RANK"));
  EXPECT_THAT(refused(with(kTorchrun, "RANK", "-1")), testing::Contains("RANK"));
  EXPECT_THAT(refused(with(kTorchrun, "RANK", "five")), testing::Contains("RANK"));
  EXPECT_THAT(refused(with(kTorchrun, "RANK", "5 ")), testing::Contains("RANK"));
  EXPECT_THAT(refused(with(kTorchrun, "WORLD_SIZE", "0")), testing::Contains("WORLD_SIZE"));
  EXPECT_THAT(refused(with(kTorchrun, "WORLD_SIZE", "99999999999999999999")),
              testing::Contains("WORLD_SIZE"));
  EXPECT_THAT(refused(with(kTorchrun, "LOCAL_RANK", "4")), ElementsAre("LOCAL_RANK"));
  EXPECT_THAT(refused(with(with(kTorchrun, "RANK", "0"), "LOCAL_RANK", "1")),
              ElementsAre("LOCAL_RANK"));
  EXPECT_THAT(refused(with(kTorchrun, "LOCAL_WORLD_SIZE", "9")), ElementsAre("LOCAL_WORLD_SIZE"));
  EXPECT_THAT(refused(with(kTorchrun, "MASTER_PORT", "70000")), ElementsAre("MASTER_PORT"));
  EXPECT_THAT(refused(with(kMpirun, "OMPI_COMM_WORLD_RANK", "4")),
              ElementsAre("OMPI_COMM_WORLD_RANK"));
  EXPECT_THAT(refused(with(kSrun, "SLURM_PROCID", "16")), ElementsAre("SLURM_PROCID"));
  EXPECT_THAT(refused(with(kSrun, "SLURM_JOB_NODELIST", "gnode[10")),
              ElementsAre("SLURM_JOB_NODELIST"));
  EXPECT_THAT(refused(with(kSrun, "SLURM_JOB_ID", "x")), ElementsAre("SLURM_JOB_ID"));
  EXPECT_THAT(refused(with(kPods, "PET_NPROC_PER_NODE", "8")), ElementsAre("PET_NPROC_PER_NODE"));
  // A complete family that is wrong is not replaced by an outer one.
  EXPECT_THAT(refused(together({with(kTorchrun, "RANK", "8"), kMpirun})), ElementsAre("RANK"));
}

TEST(FirstHost, ExpandsBrackets) {
  EXPECT_EQ(first_host("gnode[10,20-22]"), "gnode10");
  EXPECT_EQ(first_host("a[001-004,7],b"), "a001");
  EXPECT_EQ(first_host("node1,node2"), "node1");
  EXPECT_EQ(first_host("login"), "login");
  EXPECT_EQ(first_host("rack[1-2]n[3-4]-ib"), "rack1n3-ib");
  for (const char* malformed : {"", "a[1", "a]", "a[]", "a[x-3]", ",a"}) {
    EXPECT_EQ(first_host(malformed), "") << malformed;
  }
}

TEST(ProcessEnvironment, HoldsTheVariablesOfThisProcess) {
  ::setenv("TESSERA_TEST_VARIABLE", "a=b", 1);
  EXPECT_EQ(process_environment().at("TESSERA_TEST_VARIABLE"), "a=b");
}

}  // namespace
}  // namespace tessera
