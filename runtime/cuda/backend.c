/* The device: found, opened, its memory allocated, read and written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda/device.h"
#include "runtime/cuda/image.h"
#include "runtime/types.h"

/* ---- errors ---- */

static const char *describe(const RpDevice *device, CuResult result) {
  const char *text = NULL;
  if (device->cuda.error_string) device->cuda.error_string(result, &text);
  return text ? text : "unknown error";
}

static const RpKernel *running_kernel(const RpContext *context) {
  const RpPhase *phase = context->phase;
  return phase && context->kernel >= 0 && context->kernel < phase->kernel_count ? &phase->kernels[context->kernel]
                                                                                : NULL;
}

bool rp_cuda_check(const RpContext *context, CuResult result, const char *action) {
  RpDevice *device = context->device;
  if (result == 0) return device->status.code == RP_OK;
  if (device->status.code != RP_OK) return false;
  RpCode code = result == CU_OUT_OF_MEMORY || result == CU_NO_DEVICE || result == CU_NO_BINARY_FOR_GPU ? RP_NO_DEVICE
                                                                                                       : RP_INTERNAL;
  const RpKernel *kernel = running_kernel(context);
  if (kernel) {
    return rp_fail(&device->status, code, "%s: %s: CUDA cannot %s: %s (error %d)", kernel->source, kernel->name, action,
                   describe(device, result), result);
  }
  return rp_fail(
      &device->status, code, "CUDA cannot %s: %s (error %d)%s", action, describe(device, result), result,
      context->phase && !device->synchronous ? "; run with REPRISE_CUDA_SYNC=1 to see which kernel it was" : "");
}

static bool report(const RpContext *context, RpStatus *status) {
  if (context->device->status.code == RP_OK) return true;
  if (status) *status = context->device->status;
  return false;
}

/* ---- the device ---- */

static bool check_driver(RpContext *context) {
  RpDevice *device = context->device;
  int version = 0, count = 0;
  if (!rp_cuda_check(context, device->cuda.driver_version(&version), "ask for the driver's version")) return false;
  device->facts.driver_version = version;
  if (version < RP_LEAST_DRIVER) {
    return rp_fail(&device->status, RP_NO_DEVICE,
                   "the NVIDIA driver is too old: it supports CUDA %d.%d, this program needs %d.%d (driver 580 or "
                   "later)",
                   version / 1000, version % 1000 / 10, RP_LEAST_DRIVER / 1000, RP_LEAST_DRIVER % 1000 / 10);
  }
  CuResult started = device->cuda.init(0);
  if (started == 0) started = device->cuda.device_count(&count);
  if (started == CU_NO_DEVICE || (started == 0 && count == 0)) {
    return rp_fail(&device->status, RP_NO_DEVICE, "no NVIDIA GPU is visible (see nvidia-smi and CUDA_VISIBLE_DEVICES)");
  }
  return rp_cuda_check(context, started, "start");
}

static bool open_device(RpContext *context) {
  RpDevice *device = context->device;
  const CudaLibraries *cuda = &device->cuda;
  int major = 0, minor = 0;
  bool open =
      rp_cuda_check(context, cuda->device_get(&device->ordinal, 0), "open the first GPU") &&
      rp_cuda_check(context, cuda->device_name(device->facts.name, sizeof device->facts.name, device->ordinal),
                    "name it") &&
      rp_cuda_check(context, cuda->device_attribute(&major, CU_ATTRIBUTE_MAJOR, device->ordinal), "ask what it can") &&
      rp_cuda_check(context, cuda->device_attribute(&minor, CU_ATTRIBUTE_MINOR, device->ordinal), "ask what it can") &&
      rp_cuda_check(context, cuda->context_retain(&device->context, device->ordinal), "open a context") &&
      rp_cuda_check(context, cuda->context_set(device->context), "use its context");
  device->facts.architecture = 10 * major + minor;
  device->facts.emulated = cuda->declare_operands != NULL;
  return open;
}

static int64_t free_bytes(RpContext *context) {
  size_t available = 0, total = 0;
  rp_cuda_check(context, context->device->cuda.memory_info(&available, &total), "ask for its memory");
  context->device->facts.total_bytes = (int64_t)total;
  return (int64_t)available;
}

/* ---- the program's code ---- */

static bool fail_without_image(RpContext *context) {
  const RpDeviceProgram *program = context->program->device;
  char list[256] = "";
  for (int64_t i = 0; i < program->cubin_count && strlen(list) + 16 < sizeof list; i++) {
    snprintf(list + strlen(list), sizeof list - strlen(list), "%ssm_%d", i ? ", " : "",
             program->cubins[i].architecture);
  }
  return rp_fail(&context->device->status, RP_NO_DEVICE,
                 "the program has no code for %s, which is sm_%d; it was compiled for %s: compile it with --arch=sm_%d",
                 context->device->facts.name, context->device->facts.architecture, *list ? list : "nothing",
                 context->device->facts.architecture);
}

static bool load_code(RpContext *context) {
  RpDevice *device = context->device;
  const RpDeviceProgram *program = context->program->device;
  const RpImage *image = rp_cuda_choose_image(program, device->facts.architecture);
  if (!image) return fail_without_image(context);
  if (!rp_cuda_check(context, device->cuda.module_load(&device->module, image->bytes), "load the program's kernels"))
    return false;
  device->functions = rp_allocate(program->function_count, sizeof *device->functions, &device->status);
  for (int64_t i = 0; device->functions && i < program->function_count; i++) {
    const char *name = program->functions[i];
    if (!rp_cuda_check(context, device->cuda.module_function(&device->functions[i], device->module, name), name))
      return false;
  }
  return device->functions != NULL;
}

static bool open_cublas(RpContext *context) {
  RpDevice *device = context->device;
  if (!context->program->device->uses_gemm) return true;
  int64_t before = free_bytes(context);
  int result = device->cuda.cublas.create(&device->cublas);
  if (result == 0) result = device->cuda.cublas.set_stream(device->cublas, device->stream);
  device->workspace = -1;
  device->facts.libraries_bytes = before - free_bytes(context);
  if (result == 0) return true;
  return rp_fail(&device->status, RP_NO_DEVICE, "cuBLAS cannot start: %s", device->cuda.cublas.status_string(result));
}

/* ---- memory ---- */

static bool allocate_arena(RpContext *context, int64_t available) {
  RpDevice *device = context->device;
  int64_t bytes = context->program->arena_bytes;
  CuResult result = device->cuda.allocate(&device->arena, (size_t)(bytes > 0 ? bytes : 1));
  if (result != CU_OUT_OF_MEMORY) return rp_cuda_check(context, result, "allocate the arena");
  return rp_fail(&device->status, RP_NO_DEVICE,
                 "out of device memory: the arena takes %lld bytes, %s has %lld free of %lld; compile with a smaller "
                 "--memory-budget",
                 (long long)bytes, device->facts.name, (long long)available, (long long)device->facts.total_bytes);
}

static int64_t align(int64_t bytes) { return (bytes + 255) / 256 * 256; }

/* Places every input of one form of the program in a slot; returns the bytes. */
static int64_t place_inputs(const RpProgram *program, bool evaluation, int64_t *offsets) {
  int64_t end = 0;
  for (int64_t i = 0; i < program->input_count; i++) {
    const RpInput *input = &program->inputs[i];
    offsets[i] = -1;
    if ((evaluation ? input->evaluation_offset : input->tensor.offset) < 0) continue;
    offsets[i] = end;
    end = align(end + rp_tensor_bytes(&input->tensor));
  }
  return end;
}

static int64_t most_scalars(const RpProgram *program) {
  int64_t counts[] = {program->micro_step.scalar_count, program->update.scalar_count, program->evaluation.scalar_count};
  int64_t most = 0;
  for (int i = 0; i < RP_PHASES; i++) most = counts[i] > most ? counts[i] : most;
  return most;
}

static bool allocate_pinned(RpContext *context) {
  RpDevice *device = context->device;
  const RpProgram *program = context->program;
  RpPinned *pinned = &device->pinned;
  device->input_offsets = rp_allocate(2 * program->input_count, sizeof *device->input_offsets, &device->status);
  if (!device->input_offsets) return false;
  device->evaluation_offsets = device->input_offsets + program->input_count;
  int64_t train = place_inputs(program, false, device->input_offsets);
  int64_t test = place_inputs(program, true, device->evaluation_offsets), slot = train > test ? train : test;
  int64_t control = align(sizeof(RpControl)), scalars = align(most_scalars(program) * 2 * (int64_t)sizeof(float));
  void *memory = NULL;
  int64_t bytes = RP_SLOTS * slot + 2 * control + scalars + RP_PART_BYTES;
  if (!rp_cuda_check(context, device->cuda.allocate_host(&memory, (size_t)bytes, 0), "allocate pinned memory"))
    return false;
  char *at = pinned->memory = memory;
  for (int i = 0; i < RP_SLOTS; i++, at += slot) pinned->slots[i] = at;
  pinned->control_in = (RpControl *)(void *)at;
  pinned->control_out = (RpControl *)(void *)(at + control);
  pinned->scalars = (float *)(void *)(at + 2 * control);
  pinned->part = at + 2 * control + scalars;
  return true;
}

static bool create_streams(RpContext *context) {
  RpDevice *device = context->device;
  const CudaLibraries *cuda = &device->cuda;
  return rp_cuda_check(context, cuda->stream_create(&device->stream, CU_STREAM_NON_BLOCKING), "make a stream") &&
         rp_cuda_check(context, cuda->stream_create(&device->copies, CU_STREAM_NON_BLOCKING), "make a stream") &&
         rp_cuda_check(context, cuda->event_create(&device->phase_end, CU_EVENT_DISABLE_TIMING), "make an event") &&
         rp_cuda_check(context, cuda->event_create(&device->inputs_end, CU_EVENT_DISABLE_TIMING), "make an event");
}

/* ---- the backend ---- */

static bool open_all(RpContext *context) {
  RpDevice *device = context->device;
  if (!rp_cuda_load(&device->cuda, context->program->device->uses_gemm, &device->status)) return false;
  if (!check_driver(context) || !open_device(context)) return false;
  if (!load_code(context) || !create_streams(context)) return false;
  int64_t available = free_bytes(context);
  device->facts.context_bytes = device->facts.total_bytes - available;
  return open_cublas(context) && allocate_arena(context, available - device->facts.libraries_bytes) &&
         allocate_pinned(context);
}

static bool open_backend(RpContext *context, RpStatus *status) {
  const char *synchronous = getenv("REPRISE_CUDA_SYNC");
  context->device = rp_allocate(1, sizeof *context->device, status);
  if (!context->device) return false;
  context->device->synchronous = synchronous && *synchronous && strcmp(synchronous, "0") != 0;
  open_all(context);
  return report(context, status);
}

static void close_device(RpDevice *device) {
  const CudaLibraries *cuda = &device->cuda;
  for (int i = 0; i < RP_PHASES; i++)
    if (device->graphs[i]) cuda->graph_exec_destroy(device->graphs[i]);
  if (device->cublas) cuda->cublas.destroy(device->cublas);
  if (device->phase_end) cuda->event_destroy(device->phase_end);
  if (device->inputs_end) cuda->event_destroy(device->inputs_end);
  if (device->stream) cuda->stream_destroy(device->stream);
  if (device->copies) cuda->stream_destroy(device->copies);
  if (device->pinned.memory) cuda->release_host(device->pinned.memory);
  if (device->arena) cuda->release(device->arena);
  if (device->module) cuda->module_unload(device->module);
  if (device->context) cuda->context_release(device->ordinal);
}

static void close_backend(RpContext *context) {
  RpDevice *device = context->device;
  if (!device) return;
  if (device->stream) device->cuda.stream_synchronize(device->stream);
  if (device->copies) device->cuda.stream_synchronize(device->copies);
  close_device(device);
  rp_cuda_unload(&device->cuda);
  free(device->functions);
  free(device->input_offsets);
  free(device);
  context->device = NULL;
}

static void synchronise(const RpContext *context) {
  RpDevice *device = context->device;
  rp_cuda_check(context, device->cuda.stream_synchronize(device->copies), "wait for copies");
  rp_cuda_check(context, device->cuda.stream_synchronize(device->stream), "finish it");
}

static bool read_arena(const RpContext *context, int64_t offset, void *to, int64_t bytes, RpStatus *status) {
  RpDevice *device = context->device;
  synchronise(context);
  for (int64_t at = 0; at < bytes && device->status.code == RP_OK; at += RP_PART_BYTES) {
    int64_t count = bytes - at < RP_PART_BYTES ? bytes - at : RP_PART_BYTES;
    CuPointer from = device->arena + (CuPointer)(offset + at);
    rp_cuda_check(context, device->cuda.copy_out(device->pinned.part, from, (size_t)count, device->stream), "read");
    synchronise(context);
    memcpy((char *)to + at, device->pinned.part, (size_t)count);
  }
  return report(context, status);
}

static bool write_arena(const RpContext *context, int64_t offset, const void *from, int64_t bytes, RpStatus *status) {
  RpDevice *device = context->device;
  synchronise(context);
  for (int64_t at = 0; at < bytes && device->status.code == RP_OK; at += RP_PART_BYTES) {
    int64_t count = bytes - at < RP_PART_BYTES ? bytes - at : RP_PART_BYTES;
    CuPointer to = device->arena + (CuPointer)(offset + at);
    memcpy(device->pinned.part, (const char *)from + at, (size_t)count);
    rp_cuda_check(context, device->cuda.copy_in(to, device->pinned.part, (size_t)count, device->stream), "write");
    synchronise(context);
  }
  return report(context, status);
}

static bool fill_arena(const RpContext *context, int64_t offset, unsigned char value, int64_t bytes, RpStatus *status) {
  RpDevice *device = context->device;
  synchronise(context);
  if (bytes > 0 && device->status.code == RP_OK) {
    CuPointer to = device->arena + (CuPointer)offset;
    rp_cuda_check(context, device->cuda.fill(to, value, (size_t)bytes, device->stream), "fill");
    synchronise(context);
  }
  return report(context, status);
}

static const RpDeviceFacts *facts(const RpContext *context) { return &context->device->facts; }

const RpBackend rp_cuda_backend = {.open = open_backend,
                                   .close = close_backend,
                                   .read = read_arena,
                                   .write = write_arena,
                                   .fill = fill_arena,
                                   .synchronise = synchronise,
                                   .start = rp_cuda_start,
                                   .finish = rp_cuda_finish,
                                   .stage = rp_cuda_stage,
                                   .send = rp_cuda_send,
                                   .facts = facts};
