/* Threads of a block as fibers: a stack each and a switch of the callee-saved registers (10 ns; swapcontext, which
 * calls the kernel, takes 250). Elsewhere than on x86-64 swapcontext is used. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#ifndef __x86_64__
#include <ucontext.h>
#endif

#include "tests/emulator/emulator.h"

enum { STACK_BYTES = 128 << 10, GUARD_BYTES = 4096, MOST_STACKS = 1024 };

static struct {
  char *memory;
  int started, free_count;
  int free_stacks[MOST_STACKS];
  void (*entry)(void);
  void *scheduler; /* stack pointer, or ucontext_t */
} fibers;

static char *stack_end(int stack) { return fibers.memory + (size_t)(stack + 1) * STACK_BYTES; }

static void reserve_stacks(void) {
  size_t bytes = (size_t)MOST_STACKS * STACK_BYTES;
  fibers.memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (fibers.memory == MAP_FAILED) {
    perror("emulated device: no memory for stacks");
    abort();
  }
  for (int i = 0; i < MOST_STACKS; i++) mprotect(fibers.memory + (size_t)i * STACK_BYTES, GUARD_BYTES, PROT_NONE);
}

static int take_stack(void) {
  if (!fibers.memory) reserve_stacks();
  return fibers.free_count ? fibers.free_stacks[--fibers.free_count] : fibers.started++;
}

AT_UNLOAD free_stacks(void) {
  if (fibers.memory) munmap(fibers.memory, (size_t)MOST_STACKS * STACK_BYTES);
}

void fiber_reset(void) { fibers.started = fibers.free_count = 0; }

bool on_fiber_stack(const void *address) {
  const char *at = address;
  return fibers.memory && at >= fibers.memory && at < fibers.memory + (size_t)MOST_STACKS * STACK_BYTES;
}

static void enter(void) {
  fibers.entry();
  fiber_exit();
}

#ifdef __x86_64__

/* Saves the registers and the stack pointer to *from and goes on at `to`. */
void reprise_switch(void **from, void *to);
__asm__(
    ".text\n.hidden reprise_switch\n.globl reprise_switch\nreprise_switch:\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n  ret\n");

static void prepare(Thread *thread) {
  void **top = (void **)(void *)stack_end(thread->stack);
  *--top = NULL; /* enter() finds the stack as after a call: 8 below a multiple of 16 */
  *--top = (void *)(uintptr_t)enter;
  for (int i = 0; i < 6; i++) *--top = NULL;
  thread->stack_pointer = top;
}
static void switch_in(Thread *thread) { reprise_switch(&fibers.scheduler, thread->stack_pointer); }
static void switch_out(Thread *thread) { reprise_switch(&thread->stack_pointer, fibers.scheduler); }

#else

static ucontext_t scheduler_context, contexts[MOST_STACKS];
static void prepare(Thread *thread) {
  ucontext_t *context = &contexts[thread->stack];
  getcontext(context);
  context->uc_stack.ss_sp = stack_end(thread->stack) - STACK_BYTES + GUARD_BYTES;
  context->uc_stack.ss_size = STACK_BYTES - GUARD_BYTES;
  context->uc_link = NULL;
  makecontext(context, enter, 0);
  thread->stack_pointer = context;
}
static void switch_in(Thread *thread) { swapcontext(&scheduler_context, thread->stack_pointer); }
static void switch_out(Thread *thread) { swapcontext(thread->stack_pointer, &scheduler_context); }

#endif

void fiber_resume(Thread *thread, void (*entry)(void)) {
  fibers.entry = entry;
  if (!thread->stack_pointer) {
    thread->stack = take_stack();
    prepare(thread);
  }
  running = thread;
  switch_in(thread);
  running = NULL;
}

void fiber_wait(void) { switch_out(running); }

void fiber_exit(void) {
  running->done = true;
  fibers.free_stacks[fibers.free_count++] = running->stack;
  switch_out(running);
  abort();
}
