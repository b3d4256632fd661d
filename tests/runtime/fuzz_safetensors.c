/* libFuzzer target: any bytes as a safetensors file, with and without a header length that fits. Whatever is accepted
 * has to be readable to its last element, and its tensors have to cover its data. */
#include <stdlib.h>
#include <string.h>

#include "runtime/safetensors.h"
#include "runtime/types.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_entry(const RpTensorFile *tensors, const RpTensorEntry *entry) {
  RpStatus status = {0};
  if (entry->type < 0) return;
  int64_t count = (entry->end - entry->begin) / rp_type_size((RpType)entry->type);
  RpType type = entry->type == RP_F16 || entry->type == RP_BF16 ? RP_F32 : (RpType)entry->type;
  void *values = malloc((size_t)(count * rp_type_size(type)) + 1);
  if (!values || !rp_tensors_read(tensors, entry, type, 0, count, values, &status)) abort();
  free(values);
}

static void check_file(const uint8_t *bytes, size_t size) {
  RpStatus status = {0};
  RpTensorFile tensors;
  int64_t covered = 0;
  if (!rp_tensors_open_memory(&tensors, "fuzz", bytes, (int64_t)size, &status)) return;
  for (int64_t i = 0; i < tensors.count; i++) {
    covered += tensors.entries[i].end - tensors.entries[i].begin;
    check_entry(&tensors, &tensors.entries[i]);
  }
  if (covered != tensors.file.size - tensors.data_offset) abort();
  rp_tensors_close(&tensors);
}

/* The first byte says how many of the last bytes are data; the header before them gets the length it has. */
static void check_framed(const uint8_t *bytes, size_t size) {
  size_t data = bytes[0] < size ? bytes[0] : size - 1, header = size - 1 - data;
  uint8_t *file = malloc(size + 7);
  if (!file) abort();
  for (int i = 0; i < 8; i++) file[i] = (uint8_t)((uint64_t)header >> 8 * i);
  memcpy(file + 8, bytes + 1, size - 1);
  check_file(file, size + 7);
  free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  check_file(bytes, size);
  if (size > 0) check_framed(bytes, size);
  return 0;
}
