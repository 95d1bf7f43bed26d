// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loading code for a GPU: which code is chosen, what the driver is asked, and
// everything that it may refuse.

#include "cuda_test.h"

#include "gdnrt/cuda_code_choice.h"
#include "gdnrt/cuda_kernel.h"

#include <thread>

using namespace gdnrt;
using namespace gdnrt::test;

using CudaCode = CudaTest;

static bool runs(const char *target, CodeFormat format, int major, int minor) {
  CodeSchema code;
  code.target = target;
  code.format = format;
  return cuda::canRun(code, {major, minor});
}

TEST(CudaCodeChoice, Cubins) {
  auto cubin = [](const char *target, int major, int minor) {
    return runs(target, CodeFormat::cubin, major, minor);
  };
  EXPECT_TRUE(cubin("sm_80", 8, 0));
  EXPECT_TRUE(cubin("sm_80", 8, 9)); // a later minor version
  EXPECT_FALSE(cubin("sm_86", 8, 0));
  EXPECT_FALSE(cubin("sm_80", 9, 0)); // another major version
  EXPECT_TRUE(cubin("sm_90a", 9, 0));
  EXPECT_TRUE(cubin("sm_100", 10, 3));
  EXPECT_FALSE(cubin("sm_100a", 10, 3)); // exactly its version
  EXPECT_TRUE(cubin("sm_103a", 10, 3));
  EXPECT_TRUE(cubin("sm_120a", 12, 0));
}

TEST(CudaCodeChoice, Ptx) {
  auto ptx = [](const char *target, int major, int minor) {
    return runs(target, CodeFormat::ptx, major, minor);
  };
  EXPECT_TRUE(ptx("sm_80", 9, 0)); // any later version
  EXPECT_TRUE(ptx("sm_86", 9, 0));
  EXPECT_TRUE(ptx("sm_80", 8, 0));
  EXPECT_FALSE(ptx("sm_86", 8, 0));
  EXPECT_FALSE(ptx("sm_90a", 10, 0));
  EXPECT_TRUE(ptx("sm_90a", 9, 0));
}

TEST(CudaCodeChoice, OtherTargets) {
  for (const char *target : {"x86-64", "sm_", "sm_9", "sm_90b", "sm_90aa",
                             "sm_90 ", "gfx90a", "", "sm_99999999999"})
    EXPECT_FALSE(runs(target, CodeFormat::cubin, 9, 0)) << target;
  EXPECT_FALSE(runs("sm_90a", CodeFormat::sharedObject, 9, 0));
}

TEST(CudaCodeChoice, CodesThatAnEntryNoLongerHas) {
  EntrySchema entry;
  entry.name = "f";
  for (const char *target : {"sm_80", "sm_90a"}) {
    CodeSchema code;
    code.target = target;
    code.format = CodeFormat::cubin;
    entry.codes.push_back(code);
  }
  EXPECT_EQ(*cuda::chooseCode(entry, {9, 0}, std::nullopt), 1u);
  // Its place is still there, behind the last one.
  entry.codes.pop_back();
  EXPECT_EQ(cuda::chooseCode(entry, {9, 0}, std::nullopt).status().toString(),
            "UNSUPPORTED: f: the image has no code for sm_90; it has code for: "
            "sm_80 (cubin)");
}

/// An entry with a cubin for sm_100a, one for sm_90a and PTX for sm_80.
static ImageBuilder manyTargets() {
  ImageBuilder builder =
      scaleImage([](fb::CodeT &code) { code.target = "sm_100a"; });
  EntryBuilder entry(*builder.image.entries[0]);
  addGpuCode(entry, *builder.image.entries[0], "scale_90", "sm_90a",
             fb::CodeFormat::cubin, 0);
  addGpuCode(entry, *builder.image.entries[0], "scale_80", "sm_80",
             fb::CodeFormat::ptx, 1);
  builder.blob({'p', 't', 'x'});
  return builder;
}

TEST_F(CudaCode, TheFirstThatFits) {
  EXPECT_EQ(load(manyTargets())->codeIndex(), 1u);
  fakeCuda().minor = 2; // hypothetical: only the PTX fits
  EXPECT_EQ(load(manyTargets())->codeIndex(), 2u);
  // The driver got text with an end, though the blob has none.
  EXPECT_EQ(fakeCuda().modules.back(), "ptx");
  fakeCuda().major = 7;
  std::string message;
  EXPECT_FALSE(load(manyTargets(), &message));
  EXPECT_EQ(message, "UNSUPPORTED: scale: the image has no code for sm_72; it "
                     "has code for: sm_100a (cubin), sm_90a (cubin), sm_80 "
                     "(PTX)");
}

TEST_F(CudaCode, Forced) {
  Bytes bytes = manyTargets().build();
  gdnrt_image *image = nullptr;
  gdnrt_error error;
  ASSERT_EQ(gdnrt_image_load_memory(bytes.data(), bytes.size(), &image, &error),
            GDNRT_OK);
  gdnrt_device *device = makeHandle();
  auto create = [&](size_t code) -> std::string {
    gdnrt_kernel *kernel = nullptr;
    if (gdnrt_kernel_create_from_code(device, image, "scale", code, &kernel,
                                      &error) != GDNRT_OK)
      return error.message;
    std::string text = "code " + std::to_string(gdnrt_kernel_code(kernel));
    gdnrt_kernel_destroy(kernel);
    return text;
  };
  EXPECT_EQ(create(1), "code 1");
  EXPECT_EQ(create(2), "code 2");
  EXPECT_EQ(create(0), "UNSUPPORTED: scale: code 0 is for sm_100a (cubin), and "
                       "this GPU is sm_90");
  EXPECT_EQ(create(3),
            "INVALID_ARGUMENT: scale: code index 3 is past the 3 codes");
  gdnrt_code_info info = gdnrt_code_info_default();
  ASSERT_EQ(gdnrt_entry_code(gdnrt_image_entry(image, 0), 2, &info, &error),
            GDNRT_OK);
  EXPECT_STREQ(info.format, "PTX");
  gdnrt_device_destroy(device);
  gdnrt_image_destroy(image);
}

// PTX costs whoever loads it: a warning.
TEST_F(CudaCode, LogSaysWhatWasLoaded) {
  std::vector<std::string> messages;
  gdnrt_cuda_options options = gdnrt_cuda_options_default();
  options.driver = GDNRT_FAKE_CUDA;
  options.log_user = &messages;
  options.log = [](void *user, gdnrt_log_level level, const char *message) {
    static_cast<std::vector<std::string> *>(user)->push_back(
        std::to_string(level) + " " + message);
  };
  gdnrt_device *device = nullptr;
  gdnrt_image *image = nullptr;
  Bytes bytes = manyTargets().build();
  ASSERT_EQ(gdnrt_device_create_cuda(&options, &device, nullptr), GDNRT_OK);
  ASSERT_EQ(
      gdnrt_image_load_memory(bytes.data(), bytes.size(), &image, nullptr),
      GDNRT_OK);
  for (size_t code : {1, 2}) {
    gdnrt_kernel *kernel = nullptr;
    ASSERT_EQ(gdnrt_kernel_create_from_code(device, image, "scale", code,
                                            &kernel, nullptr),
              GDNRT_OK);
    gdnrt_kernel_destroy(kernel);
  }
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[0], "0 device: Fake GPU, sm_90, 132 multiprocessors");
  EXPECT_EQ(messages[1].rfind("0 scale: cubin for sm_90a, loaded in ", 0), 0u)
      << messages[1];
  EXPECT_EQ(messages[2].rfind("1 scale: PTX for sm_80, loaded in ", 0), 0u)
      << messages[2];
  gdnrt_image_destroy(image);
  gdnrt_device_destroy(device);
}

TEST_F(CudaCode, PreparesTheKernel) {
  auto loaded = load(scaleImage([](fb::CodeT &code) {
    launchOf(code).shared_bytes = 200000;
    launchOf(code).cluster = 16;
  }));
  auto &attributes = fakeCuda().functionAttributes["scale_kernel"];
  EXPECT_EQ(attributes[cuda::kFunctionDynamicSharedBytes], 200000);
  EXPECT_EQ(attributes[cuda::kFunctionNonPortableCluster], 1);
  // Loaded now, not at the first launch.
  EXPECT_EQ(fakeCuda().count("cuFuncLoad"), 1);
  // Also while another thread captures; the mode is what it was afterwards.
  const std::string mode = "cuThreadExchangeStreamCaptureMode";
  EXPECT_EQ(fakeCuda().count(mode), 2);
  fakeCuda().calls.clear();
  loaded.reset();
  EXPECT_EQ(fakeCuda().count("cuModuleUnload"), 1);
  EXPECT_EQ(fakeCuda().count(mode), 2);
}

TEST_F(CudaCode, EveryCallMayFail) {
  const std::pair<const char *, const char *> calls[] = {
      {"cuCtxPushCurrent", "cuda"},
      {"cuModuleLoadDataEx", "scale"},
      {"cuModuleGetFunction", "scale: scale_kernel"},
      {"cuFuncLoad", "scale: scale_kernel"},
      {"cuFuncGetParamInfo", "scale: scale_kernel"},
      {"cuFuncGetAttribute", "scale: scale_kernel"},
  };
  for (auto [call, what] : calls) {
    fakeCuda().failures = {{call, 1}};
    std::string message;
    EXPECT_FALSE(load(scaleImage(), &message));
    EXPECT_EQ(message, "DEVICE_ERROR: " + std::string(what) + ": " + call +
                           ": CUDA_ERROR_INVALID_VALUE (1): invalid argument");
  }
  fakeCuda().failures = {{"cuFuncSetAttribute", 1}};
  std::string message;
  load(
      scaleImage([](fb::CodeT &code) { launchOf(code).shared_bytes = 999999; }),
      &message);
  EXPECT_EQ(message, "DEVICE_ERROR: scale: scale_kernel: cuFuncSetAttribute: "
                     "CUDA_ERROR_INVALID_VALUE (1): invalid argument; 999999 "
                     "bytes of dynamic shared memory");
  fakeCuda().failures = {{"cuModuleGetFunction", 500}};
  load(scaleImage(), &message);
  EXPECT_EQ(message, "CORRUPT: scale: the code does not export scale_kernel");
}

TEST_F(CudaCode, TheAssemblersLogIsInTheMessage) {
  fakeCuda().failures = {{"cuModuleLoadDataEx", 218}};
  fakeCuda().assemblerLog = "ptxas: line 3: error\nptxas fatal\n";
  std::string message;
  load(scaleImage([](fb::CodeT &code) {
         code.target = "sm_80";
         code.format = fb::CodeFormat::ptx;
       }),
       &message);
  EXPECT_EQ(message,
            "CORRUPT: scale: cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX (218): "
            "a PTX JIT compilation failed: ptxas: line 3: error; ptxas fatal");
}

TEST_F(CudaCode, KernelsThatDoNotFitTheManifest) {
  std::string message;
  fakeCuda().parameterBytes = 64;
  load(scaleImage(), &message);
  EXPECT_EQ(message, "CORRUPT: scale: scale_kernel: expected 72 bytes of "
                     "parameters, and the kernel takes 64");
  fakeCuda().parameterBytes = 72;
  fakeCuda().maxThreads = 64;
  load(scaleImage(), &message);
  EXPECT_EQ(message,
            "UNSUPPORTED: scale: scale_kernel: expected blocks of at most 64 "
            "threads on this GPU, got 128");
}

TEST_F(CudaCode, TooManyWords) {
  ImageBuilder builder;
  EntryBuilder entry = builder.entry("wide");
  for (int i = 0; i < 171; ++i) // three words each
    entry.tensor("x" + std::to_string(i), fb::Access::read, fb::DType::f32,
                 {"N"});
  builder.blob({1});
  addGpuCode(entry, *builder.image.entries[0], "k", "sm_90a",
             fb::CodeFormat::cubin, 0);
  std::string message;
  load(builder, &message);
  EXPECT_EQ(message, "UNSUPPORTED: wide: expected at most 512 words of "
                     "arguments, got 516");
}

TEST_F(CudaCode, AModuleOfEveryBlob) {
  Bytes bytes = manyTargets().build();
  auto image = Image::loadMemory(bytes.data(), bytes.size());
  ASSERT_TRUE(image.isOk()) << image.status().toString();
  auto device = makeDevice();
  // The second code is in the first blob, the third in the second one.
  auto cubin = device->load(**image, 0, 1), ptx = device->load(**image, 0, 2);
  ASSERT_TRUE(cubin.isOk()) << cubin.status().toString();
  ASSERT_TRUE(ptx.isOk()) << ptx.status().toString();
  EXPECT_EQ(fakeCuda().loadedModules, 2);
}

TEST_F(CudaCode, OneModulePerBlob) {
  Bytes bytes = scaleImage().build();
  auto image = Image::loadMemory(bytes.data(), bytes.size());
  auto device = makeDevice();
  std::vector<std::unique_ptr<LoadedCode>> codes(8);
  std::vector<std::thread> threads;
  for (auto &code : codes)
    threads.emplace_back([&] {
      auto loaded = device->load(**image, 0);
      if (loaded.isOk())
        code = std::move(*loaded);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (auto &code : codes)
    EXPECT_TRUE(code);
  EXPECT_EQ(fakeCuda().loadedModules, 1);
  // Kernels outlive the device; the module goes with the last one.
  device.reset();
  codes.resize(1);
  EXPECT_EQ(fakeCuda().loadedModules, 1);
  EXPECT_EQ(fakeCuda().retained, 1);
  codes.clear();
  EXPECT_EQ(fakeCuda().loadedModules, 0);
  EXPECT_EQ(fakeCuda().retained, 0);
}

TEST_F(CudaCode, ADriverThatIsGoneIsNoFault) {
  // What the driver says at the end of a process.
  auto code = load(scaleImage());
  fakeCuda().failures = {{"cuModuleUnload", cuda::kDeinitialized},
                         {"cuCtxGetCurrent", cuda::kDeinitialized},
                         {"cuCtxPushCurrent", cuda::kDeinitialized},
                         {"cuDevicePrimaryCtxRelease", cuda::kDeinitialized}};
  code.reset();
  fakeCuda().loadedModules = 0;
  fakeCuda().retained = 0;
}
