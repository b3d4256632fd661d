#include "runtime/arena.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/cuda/device_program.h"
#include "runtime/types.h"

const RpBackend *rp_backend(const RpContext *context) {
  return context->program->device ? context->program->device->backend : NULL;
}

/* ---- host memory: the arena between two guard zones ---- */

/* The address sanitizer has guard zones of its own, finer ones. */
#if defined(__SANITIZE_ADDRESS__)
enum { LEAST_GUARD_BYTES = 0 };
#else
enum { LEAST_GUARD_BYTES = 4096 };
#endif
enum { GUARD = 0xC3 };

static int64_t host_alignment(const RpContext *context) {
  return context->program->alignment > 64 ? context->program->alignment : 64;
}

static int64_t guard_bytes(const RpContext *context) {
  int64_t alignment = host_alignment(context);
  return (LEAST_GUARD_BYTES + alignment - 1) / alignment * alignment;
}

static bool open_host(RpContext *context, RpStatus *status) {
  int64_t alignment = host_alignment(context), guard = guard_bytes(context), bytes = context->program->arena_bytes;
  int64_t rounded = (bytes + alignment - 1) / alignment * alignment;
  char *block = aligned_alloc((size_t)alignment, (size_t)(guard + (rounded > 0 ? rounded : alignment) + guard));
  if (!block) return rp_fail(status, RP_NO_DEVICE, "no memory for the arena of %lld bytes", (long long)bytes);
  context->arena = block + guard;
  memset(block, GUARD, (size_t)guard);
  memset(context->arena + bytes, GUARD, (size_t)guard);
  return true;
}

static bool is_guard(const char *bytes, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if ((unsigned char)bytes[i] != GUARD) return false;
  return true;
}

bool rp_arena_is_intact(const RpContext *context) {
  int64_t guard = guard_bytes(context);
  if (rp_backend(context)) return true;
  return is_guard(context->arena - guard, guard) && is_guard(context->arena + context->program->arena_bytes, guard);
}

bool rp_arena_open(RpContext *context, RpStatus *status) {
  const RpBackend *backend = rp_backend(context);
  return backend ? backend->open(context, status) : open_host(context, status);
}

void rp_arena_close(RpContext *context) {
  const RpBackend *backend = rp_backend(context);
  if (backend) backend->close(context);
  if (context->arena) free(context->arena - (backend ? 0 : guard_bytes(context)));
  context->arena = NULL;
}

bool rp_arena_read(const RpContext *context, int64_t offset, void *to, int64_t bytes, RpStatus *status) {
  const RpBackend *backend = rp_backend(context);
  if (backend) return backend->read(context, offset, to, bytes, status);
  memcpy(to, context->arena + offset, (size_t)bytes);
  return true;
}

bool rp_arena_write(const RpContext *context, int64_t offset, const void *from, int64_t bytes, RpStatus *status) {
  const RpBackend *backend = rp_backend(context);
  if (backend) return backend->write(context, offset, from, bytes, status);
  memcpy(context->arena + offset, from, (size_t)bytes);
  return true;
}

bool rp_arena_fill(const RpContext *context, int64_t offset, unsigned char value, int64_t bytes, RpStatus *status) {
  const RpBackend *backend = rp_backend(context);
  if (backend) return backend->fill(context, offset, value, bytes, status);
  memset(context->arena + offset, value, (size_t)bytes);
  return true;
}

void rp_arena_synchronise(const RpContext *context) {
  const RpBackend *backend = rp_backend(context);
  if (backend) backend->synchronise(context);
}

static bool save_parts(const RpContext *context, RpTensorWriter *writer, int64_t index, const RpTensor *tensor,
                       RpStatus *status) {
  enum { PART = 1 << 20 };
  char *part = rp_allocate(PART, 1, status);
  int64_t bytes = rp_tensor_bytes(tensor);
  bool saved = part != NULL;
  for (int64_t at = 0; saved && at < bytes; at += PART) {
    int64_t count = bytes - at < PART ? bytes - at : PART;
    saved = rp_arena_read(context, tensor->offset + at, part, count, status) &&
            rp_writer_put_part(writer, index, at, part, count, status);
  }
  free(part);
  return saved;
}

bool rp_arena_save(const RpContext *context, RpTensorWriter *writer, int64_t index, const RpTensor *tensor,
                   RpStatus *status) {
  if (rp_backend(context)) return save_parts(context, writer, index, tensor, status);
  return rp_writer_put(writer, index, context->arena + tensor->offset, status);
}

bool rp_phase_start(RpContext *context, const RpControl *control, RpStatus *status) {
  const RpBackend *backend = rp_backend(context);
  context->kernel = 0;
  if (backend) return backend->start(context, control, status);
  *rp_control(context) = *control;
  context->phase->run(context);
  return true;
}

bool rp_phase_finish(RpContext *context, RpControl *control, float *scalars, RpStatus *status) {
  const RpBackend *backend = rp_backend(context);
  if (backend) return backend->finish(context, control, scalars, status);
  const RpPhase *phase = context->phase;
  *control = *rp_control(context);
  for (int64_t i = 0; i < phase->scalar_count; i++) {
    const RpScalar *scalar = &phase->scalars[i];
    scalars[2 * i + 1] = 1;
    rp_arena_read(context, scalar->offset, &scalars[2 * i], sizeof *scalars, status);
    if (scalar->denominator_offset < 0) continue;
    rp_arena_read(context, scalar->denominator_offset, &scalars[2 * i + 1], sizeof *scalars, status);
  }
  return true;
}
