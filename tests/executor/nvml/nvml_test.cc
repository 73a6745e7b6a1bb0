// What the sampler makes of a GPU's figures, from a library with NVIDIA's declarations.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <cmath>
#include <new>
#include <thread>

#include "cost_models/documents/problem.h"
#include "executor/nvml/device_sampler.h"
#include "tests/executor/nvml/fake_nvml.h"

namespace tessera {
namespace {

using namespace std::chrono_literals;
using testing::DoubleEq;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr const char* kFirst = "0000:1B:00.0";  // as cudaDeviceGetPCIBusId writes them
constexpr const char* kSecond = "0000:C3:00.0";

class Nvml : public testing::Test {
 protected:
  void SetUp() override {
    library_ = ::dlopen(FAKE_NVML, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << ::dlerror();
    auto* state = reinterpret_cast<FakeNvmlState*>(::dlsym(library_, "fake_nvml_state"));
    ASSERT_NE(state, nullptr);
    fake_ = new (state()) FakeNvml();
  }
  void TearDown() override {
    EXPECT_EQ(fake_->started, fake_->ended);
    ::dlclose(library_);
  }

  /// Waits until the sampler has looked so often.
  void await_looks(int looks) const {
    for (int i = 0; i < 5000 && fake_->looks < looks; ++i) std::this_thread::sleep_for(2ms);
    ASSERT_GE(fake_->looks, looks);
  }
  /// What there is to take once there is something: a look ends after its first figure.
  static std::map<std::string, double> first_of(DeviceSampler& sampler) {
    std::map<std::string, double> taken;
    for (int i = 0; i < 5000 && (taken = sampler.take()).empty(); ++i) {
      std::this_thread::sleep_for(2ms);
    }
    return taken;
  }
  static std::string trouble_of(DeviceSampler& sampler) {
    std::string trouble;
    for (int i = 0; i < 5000 && (trouble = sampler.trouble()).empty(); ++i) {
      std::this_thread::sleep_for(2ms);
    }
    return trouble;
  }

  void* library_ = nullptr;
  FakeNvml* fake_ = nullptr;
};

TEST_F(Nvml, TellsTheFiguresOfTheGpuOnThatBus) {
  EXPECT_THAT(NvmlDevice(FAKE_NVML, kSecond).load(),
              UnorderedElementsAre(Pair("utilization_percentage", 97),
                                   Pair("memory_usage_megabytes", DoubleEq(61234.56789)),
                                   Pair("power_usage_watts", DoubleEq(688.4)),
                                   Pair("temperature_celsius", 64), Pair("sm_clock_mhz", 1980)));
  EXPECT_THAT(NvmlDevice(FAKE_NVML, kFirst).load(),
              UnorderedElementsAre(Pair("utilization_percentage", 13),
                                   Pair("memory_usage_megabytes", DoubleEq(512)),
                                   Pair("power_usage_watts", DoubleEq(71.25)),
                                   Pair("temperature_celsius", 31), Pair("sm_clock_mhz", 345)));
}

TEST_F(Nvml, MetricsHaveTheRankInTheirNames) {
  DeviceSampler sampler({.rank = 5, .pci_bus_id = kSecond, .library = FAKE_NVML});
  EXPECT_THAT(
      first_of(sampler),
      UnorderedElementsAre(Pair("system/gpu_5_utilization_percentage", 97),
                           Pair("system/gpu_5_memory_usage_megabytes", DoubleEq(61234.56789)),
                           Pair("system/gpu_5_power_usage_watts", DoubleEq(688.4)),
                           Pair("system/gpu_5_temperature_celsius", 64),
                           Pair("system/gpu_5_sm_clock_mhz", 1980)));
  EXPECT_EQ(sampler.trouble(), "");
}

/// The k-th look sees k percent. Means of 1..n and of n+1..m tell n and m, which are whole numbers.
TEST_F(Nvml, EachStepHasTheMeanOfItsOwnLooks) {
  fake_->counts = true;
  DeviceSampler sampler({.rank = 0, .pci_bus_id = kFirst, .library = FAKE_NVML, .period = 3ms});
  const std::string name = "system/gpu_0_utilization_percentage";
  int taken = 0;  // looks so far
  for (int step = 0; step < 20; ++step) {
    await_looks(taken + 5);
    const double mean = sampler.take().at(name);
    const double last = 2 * mean - (taken + 1);
    EXPECT_NEAR(last, std::round(last), 1e-9) << "no mean of consecutive looks";
    EXPECT_GE(last, taken + 4);  // the fifth may not have been noted
    EXPECT_LE(last, fake_->looks);
    taken = static_cast<int>(std::lround(last));
  }
}

TEST_F(Nvml, AStepWithoutALookOfItsOwnHasTheNewest) {
  DeviceSampler sampler({.rank = 0, .pci_bus_id = kFirst, .library = FAKE_NVML, .period = 1h});
  const std::map<std::string, double> first = first_of(sampler);
  EXPECT_EQ(first.size(), 5U);
  EXPECT_EQ(sampler.take(), first);
  EXPECT_EQ(fake_->looks, 1);
}

TEST_F(Nvml, LooksOnceASecondUnlessToldOtherwise) {
  const auto begin = std::chrono::steady_clock::now();
  {
    DeviceSampler sampler({.rank = 0, .pci_bus_id = kFirst, .library = FAKE_NVML});
    await_looks(3);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took.count(), 2.0);
  EXPECT_LE(fake_->looks, 1 + took.count());
}

TEST_F(Nvml, WhereThereIsNoLibraryOneLineSaysSo) {
  DeviceSampler sampler({.rank = 0, .pci_bus_id = kFirst, .library = "libnvidia-ml-of-none.so.1"});
  EXPECT_THAT(trouble_of(sampler), HasSubstr("libnvidia-ml-of-none.so.1: cannot open shared"));
  EXPECT_EQ(sampler.trouble(), "") << "once";
  EXPECT_THAT(sampler.take(), IsEmpty());
}

TEST_F(Nvml, ALibraryThatIsNotNvmlIsRefused) {
  try {
    const NvmlDevice device("libc.so.6", kFirst);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("libc.so.6: not NVML"));
  }
}

TEST_F(Nvml, WhereTheDriverIsNotThereItSaysWhy) {
  fake_->fails_to_start = 9;  // NVML_ERROR_DRIVER_NOT_LOADED
  DeviceSampler sampler({.rank = 0, .pci_bus_id = kFirst, .library = FAKE_NVML});
  EXPECT_THAT(trouble_of(sampler), HasSubstr("Driver Not Loaded"));
  EXPECT_THAT(sampler.take(), IsEmpty());
}

TEST_F(Nvml, AGpuThatIsNotThereIsNamed) {
  DeviceSampler sampler({.rank = 0, .pci_bus_id = "0000:02:00.0", .library = FAKE_NVML});
  EXPECT_THAT(trouble_of(sampler), HasSubstr("GPU 0000:02:00.0: Not Found"));
}

TEST_F(Nvml, WhatAGpuDoesNotTellIsLeftOut) {
  fake_->no_power = 1;
  const DeviceLoad load = NvmlDevice(FAKE_NVML, kSecond).load();
  EXPECT_FALSE(load.contains("power_usage_watts"));
  EXPECT_EQ(load.size(), 4U);
}

/// A GPU that falls off the bus costs its figures, and not the run.
TEST_F(Nvml, ALostGpuHasNoFiguresAnyMore) {
  DeviceSampler sampler({.rank = 0, .pci_bus_id = kFirst, .library = FAKE_NVML, .period = 3ms});
  EXPECT_EQ(first_of(sampler).size(), 5U);
  fake_->lost = 1;
  await_looks(fake_->looks + 3);
  sampler.take();  // may hold looks from before
  await_looks(fake_->looks + 3);
  EXPECT_THAT(sampler.take(), IsEmpty());
  EXPECT_EQ(sampler.trouble(), "");
}

}  // namespace
}  // namespace tessera
