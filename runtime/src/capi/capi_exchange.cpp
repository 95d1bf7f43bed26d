// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI of exchanges.

#include "exchange_handle.h"
#include "handles.h"
#include "sized_struct.h"

#include <cstring>

using namespace gdnrt;

static_assert(sizeof(nccl::UniqueId) == GDNRT_NCCL_ID_BYTES);

static std::chrono::milliseconds toTimeout(int64_t given) {
  return std::chrono::milliseconds(given == 0 ? 60000 : given);
}

static ::gdnrt::Result<NcclExchangeOptions>
toOptions(const gdnrt_nccl_options *given) {
  gdnrt_nccl_options known;
  if (Status s = readStruct("options", given, known); !s.isOk())
    return s;
  if ((known.communicator != nullptr) == (known.id != nullptr))
    return invalid("exchange: expected a communicator or an id, got ",
                   known.id ? "both" : "none");
  NcclExchangeOptions options;
  if (known.library)
    options.library = known.library;
  options.communicator = static_cast<nccl::Comm>(known.communicator);
  if (known.id)
    std::memcpy(options.id.bytes, known.id, sizeof(options.id.bytes));
  options.rank = known.rank;
  options.size = known.num_ranks;
  options.timeout = toTimeout(known.timeout_ms);
  return options;
}

/// All ranks of a process, or none.
static Status
giveAll(::gdnrt::Result<std::vector<std::unique_ptr<Exchange>>> made,
        gdnrt_exchange **exchanges) {
  if (!made.isOk())
    return made.status();
  std::vector<std::unique_ptr<gdnrt_exchange>> handles;
  for (auto &one : *made)
    handles.push_back(
        std::make_unique<gdnrt_exchange>(gdnrt_exchange{std::move(one)}));
  for (size_t i = 0; i < handles.size(); ++i)
    exchanges[i] = handles[i].release();
  return {};
}

gdnrt_status gdnrt_nccl_id(const char *library, uint8_t *id,
                           gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!id)
      return nullPointer("id");
    auto made = makeNcclId(library ? library : nccl::kLibrary);
    if (made.isOk())
      std::memcpy(id, made->bytes, sizeof(made->bytes));
    return made.status();
  });
}

gdnrt_status gdnrt_exchange_create_nccl(gdnrt_device *device,
                                        const gdnrt_nccl_options *options,
                                        gdnrt_exchange **exchange,
                                        gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!device)
      return nullPointer("device");
    if (!exchange)
      return nullPointer("exchange");
    auto known = toOptions(options);
    if (!known.isOk())
      return known.status();
    auto made = makeNcclExchange(device->device, *known);
    if (made.isOk())
      *exchange = new gdnrt_exchange{std::move(*made)};
    return made.status();
  });
}

gdnrt_status gdnrt_exchange_create_threads(int32_t num_ranks,
                                           int64_t timeout_ms,
                                           gdnrt_exchange **exchanges,
                                           gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!exchanges)
      return nullPointer("exchanges");
    return giveAll(makeThreadExchanges(num_ranks, toTimeout(timeout_ms)),
                   exchanges);
  });
}

gdnrt_status gdnrt_exchange_create_streams(gdnrt_device *device,
                                           int32_t num_ranks,
                                           int64_t timeout_ms,
                                           gdnrt_exchange **exchanges,
                                           gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!device)
      return nullPointer("device");
    if (!exchanges)
      return nullPointer("exchanges");
    return giveAll(
        makeStreamExchanges(device->device, num_ranks, toTimeout(timeout_ms)),
        exchanges);
  });
}

void gdnrt_exchange_destroy(gdnrt_exchange *exchange) { delete exchange; }

gdnrt_status gdnrt_exchange_describe(const gdnrt_exchange *exchange,
                                     int32_t *rank, int32_t *num_ranks,
                                     gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!exchange)
      return nullPointer("exchange");
    if (!rank || !num_ranks)
      return nullPointer(rank ? "num_ranks" : "rank");
    *rank = exchange->exchange->rank();
    *num_ranks = exchange->exchange->size();
    return {};
  });
}

gdnrt_status gdnrt_exchange_all_gather(gdnrt_exchange *exchange,
                                       const void *send, void *receive,
                                       uint64_t bytes, void *stream,
                                       gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!exchange)
      return nullPointer("exchange");
    if (bytes != 0 && (!send || !receive))
      return nullPointer(send ? "receive" : "send");
    const auto most = static_cast<uint64_t>(INT64_MAX) /
                      static_cast<uint64_t>(exchange->exchange->size());
    if (bytes > most)
      return invalid("exchange: bytes: expected at most ", most, ", got ",
                     bytes);
    return exchange->exchange->allGather(send, receive, bytes, stream);
  });
}

gdnrt_status gdnrt_exchange_wait(gdnrt_exchange *exchange, void *stream,
                                 gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    return exchange ? exchange->exchange->wait(stream)
                    : nullPointer("exchange");
  });
}

gdnrt_status gdnrt_exchange_abort(gdnrt_exchange *exchange,
                                  gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!exchange)
      return nullPointer("exchange");
    exchange->exchange->abort();
    return {};
  });
}
