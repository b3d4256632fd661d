/* codegen/pictures/report_kernels.c - what the kernels of a CUDA program take on every architecture. */
#include "codegen/emission.h"
#include "codegen/pictures/report.h"

static void append_heads(Text *html, const CudaImages *images) {
  text_append(html,
              "<thead><tr><th rowspan=\"2\" scope=\"col\">kernel</th><th rowspan=\"2\" scope=\"col\">node</th>"
              "<th rowspan=\"2\" scope=\"col\">source</th>");
  for (int a = 0; a < images->count; a++)
    text_append(html, "<th colspan=\"3\" scope=\"colgroup\">sm_%d</th>", images->cubins[a].architecture);
  text_append(html, "</tr><tr>");
  for (int a = 0; a < images->count; a++)
    text_append(html,
                "<th scope=\"col\" class=\"num\">registers</th><th scope=\"col\" class=\"num\">shared bytes</th>"
                "<th scope=\"col\" class=\"num\">spilled bytes</th>");
  text_append(html, "</tr></thead>\n");
}

static void append_use(Text *html, const CudaKernelUse *use) {
  if (use->registers < 0) {
    text_append(html, "<td class=\"num\">?</td><td class=\"num\">?</td><td class=\"num\">?</td>");
    return;
  }
  text_append(html, "<td class=\"num\">%d</td><td class=\"num\">%d</td>", use->registers, use->shared_bytes);
  text_append(html,
              use->spill_bytes ? "<td class=\"num recomputed\"><span class=\"mark\">%d</span></td>"
                               : "<td class=\"num\">%d</td>",
              use->spill_bytes);
}

void append_kernel_table(Text *html, const CudaProgram *program, const CudaImages *images) {
  MemoryArena *arena = html->arena;
  text_append(html, "<div class=\"scroll tall\"><table id=\"kernel-table\">");
  append_heads(html, images);
  text_append(html, "<tbody>\n");
  for (int64_t k = 0; k < program->cuda.kernels.count; k++) {
    const CudaKernel *kernel = &program->cuda.kernels.items[k];
    text_append(html, "<tr><td>%s</td><td>%s</td><td>%s</td>", escape_markup(arena, kernel->name),
                escape_markup(arena, kernel->title), escape_markup(arena, source_text(arena, kernel->location)));
    for (int a = 0; a < images->count; a++) append_use(html, &images->cubins[a].uses[k]);
    text_append(html, "</tr>\n");
  }
  text_append(html, "</tbody></table></div>\n");
}
