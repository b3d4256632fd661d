#include <stdlib.h>
#include <string.h>

#include "runtime/safetensors.h"
#include "runtime/types.h"

static const char *const type_names[] = {[RP_F32] = "F32", [RP_F64] = "F64", [RP_BF16] = "BF16", [RP_F16] = "F16",
                                         [RP_I32] = "I32", [RP_I64] = "I64", [RP_U8] = "U8",     [RP_BOOL] = "BOOL"};

static json_t *describe_metadata(const RpMetadata *metadata, int count) {
  json_t *object = json_pack("{s:s}", "format", "pt");
  for (int i = 0; i < count; i++) json_object_set_new(object, metadata[i].key, json_string(metadata[i].value));
  return object;
}

static json_t *describe_tensor(const RpTensor *tensor, int64_t begin, int64_t end) {
  json_t *shape = json_array();
  for (int axis = 0; axis < tensor->rank; axis++) json_array_append_new(shape, json_integer(tensor->dims[axis]));
  return json_pack("{s:s, s:o, s:[I,I]}", "dtype", type_names[tensor->type], "shape", shape, "data_offsets",
                   (json_int_t)begin, (json_int_t)end);
}

/* Fills begins and sizes and builds the header; NULL (with status) for a duplicate or unprintable name. */
static json_t *describe(RpTensorWriter *writer, const RpTensor *tensors, const RpMetadata *metadata, int metadata_count,
                        RpStatus *status) {
  json_t *header = json_object();
  int64_t at = 0;
  json_object_set_new(header, "__metadata__", describe_metadata(metadata, metadata_count));
  for (int64_t i = 0; i < writer->count; i++) {
    writer->begins[i] = at;
    writer->sizes[i] = rp_tensor_bytes(&tensors[i]);
    at += writer->sizes[i];
    if (json_object_get(header, tensors[i].name) ||
        json_object_set_new(header, tensors[i].name, describe_tensor(&tensors[i], writer->begins[i], at)) != 0) {
      rp_fail(status, RP_INTERNAL, "cannot name a tensor of a weights file '%.200s'", tensors[i].name);
      json_decref(header);
      return NULL;
    }
  }
  return header;
}

/* The header, padded with spaces to a multiple of 8, after its length. */
static bool write_header(RpTensorWriter *writer, const json_t *header, RpStatus *status) {
  char *text = json_dumps(header, JSON_COMPACT | JSON_PRESERVE_ORDER);
  if (!text) return rp_fail(status, RP_IO, "out of memory for a header");
  size_t length = strlen(text), padded = (length + 7) / 8 * 8;
  unsigned char prefix[8];
  for (int i = 0; i < 8; i++) prefix[i] = (unsigned char)((uint64_t)padded >> 8 * i);
  writer->data_offset = 8 + (int64_t)padded;
  bool written = rp_output_write(&writer->output, 0, prefix, 8, status) &&
                 rp_output_write(&writer->output, 8, text, (int64_t)length, status) &&
                 rp_output_write(&writer->output, 8 + (int64_t)length, "       ", (int64_t)(padded - length), status);
  free(text);
  return written;
}

bool rp_writer_open(RpTensorWriter *writer, const char *path, const RpTensor *tensors, int64_t count,
                    const RpMetadata *metadata, int metadata_count, RpStatus *status) {
  *writer = (RpTensorWriter){.count = count};
  writer->begins = rp_allocate(count, sizeof *writer->begins, status);
  writer->sizes = rp_allocate(count, sizeof *writer->sizes, status);
  json_t *header = NULL;
  if (writer->begins && writer->sizes) header = describe(writer, tensors, metadata, metadata_count, status);
  writer->open = header && rp_output_open(&writer->output, path, status);
  bool written = writer->open && write_header(writer, header, status);
  json_decref(header);
  if (!written) rp_writer_discard(writer);
  return written;
}

bool rp_writer_put_part(RpTensorWriter *writer, int64_t index, int64_t offset, const void *data, int64_t count,
                        RpStatus *status) {
  return rp_output_write(&writer->output, writer->data_offset + writer->begins[index] + offset, data, count, status);
}

bool rp_writer_put(RpTensorWriter *writer, int64_t index, const void *data, RpStatus *status) {
  return rp_writer_put_part(writer, index, 0, data, writer->sizes[index], status);
}

bool rp_writer_commit(RpTensorWriter *writer, RpStatus *status) {
  bool committed = rp_output_commit(&writer->output, status);
  writer->open = false;
  rp_writer_discard(writer);
  return committed;
}

void rp_writer_discard(RpTensorWriter *writer) {
  if (writer->open) rp_output_discard(&writer->output);
  free(writer->begins);
  free(writer->sizes);
  *writer = (RpTensorWriter){0};
}
