// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI of images and of what their entries say.

#include "handles.h"
#include "sized_struct.h"

using namespace gdnrt;

gdnrt_status gdnrt_image_load_file(const char *path, gdnrt_image **image,
                                   gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!path)
      return nullPointer("path");
    if (!image)
      return nullPointer("image");
    auto loaded = Image::loadFile(path);
    if (loaded.isOk())
      *image = new gdnrt_image{std::move(*loaded)};
    return loaded.status();
  });
}

gdnrt_status gdnrt_image_load_memory(const void *data, size_t size,
                                     gdnrt_image **image, gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!data)
      return nullPointer("data");
    if (!image)
      return nullPointer("image");
    auto loaded = Image::loadMemory(data, size);
    if (loaded.isOk())
      *image = new gdnrt_image{std::move(*loaded)};
    return loaded.status();
  });
}

void gdnrt_image_destroy(gdnrt_image *image) { delete image; }

const char *gdnrt_image_producer(const gdnrt_image *image) {
  return image ? image->image->producer().c_str() : "";
}

size_t gdnrt_image_entry_count(const gdnrt_image *image) {
  return image ? image->image->entries().size() : 0;
}

const gdnrt_entry *gdnrt_image_entry(const gdnrt_image *image, size_t index) {
  if (index >= gdnrt_image_entry_count(image))
    return nullptr;
  return wrap(image->image->entries()[index].get());
}

gdnrt_status gdnrt_image_find_entry(const gdnrt_image *image, const char *name,
                                    const gdnrt_entry **entry,
                                    gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!image)
      return nullPointer("image");
    if (!name)
      return nullPointer("name");
    if (!entry)
      return nullPointer("entry");
    auto index = image->image->findEntry(name);
    if (index.isOk())
      *entry = gdnrt_image_entry(image, *index);
    return index.status();
  });
}

gdnrt_status gdnrt_image_find_kind(const gdnrt_image *image, const char *kind,
                                   int32_t io, int32_t state,
                                   const gdnrt_entry **entry,
                                   gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!image)
      return nullPointer("image");
    if (!kind)
      return nullPointer("kind");
    if (!entry)
      return nullPointer("entry");
    for (auto [name, dtype] : {std::pair("io", io), {"state", state}})
      if (dtype < -1 || dtype > GDNRT_U8)
        return invalid(name, ": expected a dtype or -1, got ", dtype);
    auto text = [](int32_t dtype) {
      return dtype == -1 ? "" : toString(static_cast<DType>(dtype));
    };
    auto index = image->image->findKind(kind, text(io), text(state));
    if (index.isOk())
      *entry = gdnrt_image_entry(image, *index);
    return index.status();
  });
}

const char *gdnrt_entry_name(const gdnrt_entry *entry) {
  return entry ? unwrap(entry)->name.c_str() : "";
}

size_t gdnrt_entry_param_count(const gdnrt_entry *entry) {
  return entry ? unwrap(entry)->params.size() : 0;
}

gdnrt_status gdnrt_entry_param(const gdnrt_entry *entry, size_t index,
                               gdnrt_param_info *info, gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!entry)
      return nullPointer("entry");
    if (Status s = checkStruct("info", info); !s.isOk())
      return s;
    const EntrySchema &schema = *unwrap(entry);
    if (index >= schema.params.size())
      return invalid(schema.name, ": parameter index ", index, " is past the ",
                     schema.params.size(), " parameters");
    const ParamSchema &param = schema.params[index];
    gdnrt_param_info filled = gdnrt_param_info_default();
    filled.name = param.name.c_str();
    filled.kind = static_cast<gdnrt_param_kind>(param.kind);
    filled.access = static_cast<gdnrt_access>(param.access);
    filled.dtype = static_cast<gdnrt_dtype>(param.dtype);
    filled.rank = param.rank();
    for (int d = 0; d < param.rank(); ++d)
      filled.dims[d] = param.dimTexts[d].c_str();
    filled.unit_stride_last = param.unitStrideLast;
    filled.unit_stride_dim = param.unitStrideDim;
    filled.optional = param.optional;
    writeStruct(filled, info);
    return {};
  });
}

gdnrt_status gdnrt_entry_find_param(const gdnrt_entry *entry, const char *name,
                                    size_t *index, gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!entry)
      return nullPointer("entry");
    if (!name)
      return nullPointer("name");
    if (!index)
      return nullPointer("index");
    const EntrySchema &schema = *unwrap(entry);
    auto found = schema.findParam(name);
    if (!found)
      return unknownParam(schema, name);
    *index = *found;
    return {};
  });
}

size_t gdnrt_entry_symbol_count(const gdnrt_entry *entry) {
  return entry ? unwrap(entry)->symbols.size() : 0;
}

const char *gdnrt_entry_symbol(const gdnrt_entry *entry, size_t index) {
  if (index >= gdnrt_entry_symbol_count(entry))
    return nullptr;
  return unwrap(entry)->symbols[index].c_str();
}

size_t gdnrt_entry_attribute_count(const gdnrt_entry *entry) {
  return entry ? unwrap(entry)->attributes.size() : 0;
}

const char *gdnrt_entry_attribute_key(const gdnrt_entry *entry, size_t index) {
  if (index >= gdnrt_entry_attribute_count(entry))
    return nullptr;
  return unwrap(entry)->attributes[index].first.c_str();
}

const char *gdnrt_entry_attribute_value(const gdnrt_entry *entry,
                                        size_t index) {
  if (index >= gdnrt_entry_attribute_count(entry))
    return nullptr;
  return unwrap(entry)->attributes[index].second.c_str();
}

const char *gdnrt_entry_attribute(const gdnrt_entry *entry, const char *key) {
  if (!entry || !key)
    return nullptr;
  for (const auto &[name, value] : unwrap(entry)->attributes)
    if (name == key)
      return value.c_str();
  return nullptr;
}

size_t gdnrt_entry_code_count(const gdnrt_entry *entry) {
  return entry ? unwrap(entry)->codes.size() : 0;
}

gdnrt_status gdnrt_entry_code(const gdnrt_entry *entry, size_t index,
                              gdnrt_code_info *info, gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!entry)
      return nullPointer("entry");
    if (Status s = checkStruct("info", info); !s.isOk())
      return s;
    const EntrySchema &schema = *unwrap(entry);
    if (index >= schema.codes.size())
      return invalid(schema.name, ": code index ", index, " is past the ",
                     schema.codes.size(), " codes");
    const CodeSchema &code = schema.codes[index];
    gdnrt_code_info filled = gdnrt_code_info_default();
    filled.target = code.target.c_str();
    filled.format = toString(code.format);
    filled.features = code.featureText.c_str();
    filled.scratch_bytes = code.scratchBytes();
    writeStruct(filled, info);
    return {};
  });
}

size_t gdnrt_entry_variant_count(const gdnrt_entry *entry, size_t code) {
  if (code >= gdnrt_entry_code_count(entry))
    return 0;
  return unwrap(entry)->codes[code].variants.size();
}

gdnrt_status gdnrt_entry_variant(const gdnrt_entry *entry, size_t code,
                                 size_t index, gdnrt_variant_info *info,
                                 gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!entry)
      return nullPointer("entry");
    if (Status s = checkStruct("info", info); !s.isOk())
      return s;
    const EntrySchema &schema = *unwrap(entry);
    if (code >= schema.codes.size())
      return invalid(schema.name, ": code index ", code, " is past the ",
                     schema.codes.size(), " codes");
    const std::vector<VariantSchema> &variants = schema.codes[code].variants;
    if (index >= variants.size())
      return invalid(schema.name, ": variant index ", index, " is past the ",
                     variants.size(), " variants");
    const VariantSchema &variant = variants[index];
    gdnrt_variant_info filled = gdnrt_variant_info_default();
    filled.name = variant.name.c_str();
    filled.conditions = variant.conditionText.c_str();
    filled.stage_count = variant.stages.size();
    filled.needs_workspace = variant.needsWorkspace();
    filled.scratch_bytes = variant.scratchBytes();
    filled.bits = variant.bits.c_str();
    writeStruct(filled, info);
    return {};
  });
}
