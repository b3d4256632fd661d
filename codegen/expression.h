/* codegen/expression.h - the expressions of the op table as C (and, the same text, CUDA).
 *
 * A scalar is computed in the C type of its class: float, double, or int64_t for integers; bools are bool. Every
 * instruction's result is brought to its own data type at once, so that a value is the same whether it is stored
 * between two kernels or stays in a register of a fused one. */
#ifndef REPRISE_CODEGEN_EXPRESSION_H
#define REPRISE_CODEGEN_EXPRESSION_H

#include "codegen/text.h"
#include "ir/ir.h"

/* What an identifier of an expression stands for. */
typedef struct Symbol {
  const char *name, *text;
} Symbol;

/* Replaces identifiers by their symbols and functions by those of runtime/scalar_math.h, and writes REAL(…) as a
 * literal of the data type in which the expression is computed. Dies on a name it does not know. */
char *expression_write(MemoryArena *arena, const char *expression, DataType dtype, int symbol_count,
                       const Symbol *symbols);

/* The C type in which values of a data type are stored ("int32_t"), and computed ("int64_t"). */
const char *c_storage_type(DataType dtype);
const char *c_compute_type(DataType dtype);

/* A literal of the compute type, exact, in parentheses when negative. */
char *c_real_literal(MemoryArena *arena, DataType dtype, double value);
char *c_integer_literal(MemoryArena *arena, int64_t value);

/* Limits of a reduction's accumulator. */
char *c_lowest(MemoryArena *arena, DataType dtype);
char *c_highest(MemoryArena *arena, DataType dtype);

/* Text of one instruction: operands[i] is the text (a name or a literal) of operand i, of type operand_types[i]; index
 * and random_id name the variables with the element's index and the id of its random numbers. */
typedef struct InstructionText {
  const Instruction *instruction;
  const char *operands[MAX_POINTWISE_INPUTS];
  DataType operand_types[MAX_POINTWISE_INPUTS];
  const char *index, *random_id;
} InstructionText;
char *instruction_write(MemoryArena *arena, const InstructionText *text);

/* False for instructions that call a function which compilers cannot vectorise. */
bool instruction_vectorises(const InstructionText *text);

#endif
