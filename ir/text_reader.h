/* ir/text_reader.h - the cursor that reads the words of the text form. Used by text_parse.c.
 *
 * The first fault is reported at its place; from then on every function does nothing and returns 0, "" or false. */
#ifndef REPRISE_IR_TEXT_READER_H
#define REPRISE_IR_TEXT_READER_H

#include "ir/ir.h"

/* "file:line:column" as read, before the text of the file is made up. */
typedef struct Place {
  int64_t file, line, column; /* file: index into files */
} Place;

typedef struct TextReader {
  MemoryArena *arena;
  const Source *source;
  int64_t at;
  bool failed;
  StringMap file_indices;
  ARRAY(Source *) files;
  ARRAY(Place) places;
} TextReader;

/* Reports at the cursor unless something was reported before. */
void text_fail(TextReader *reader, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Where the next token begins. */
int64_t text_position(TextReader *reader);
bool text_at_end(TextReader *reader);
/* Takes a word or a punctuation mark when it comes next. */
bool text_accept(TextReader *reader, const char *token);
bool text_at_word(TextReader *reader, const char *token); /* the same without taking it */
void text_expect(TextReader *reader, const char *token);
/* Takes a character that begins a longer token, such as the t of t0. */
bool text_take(TextReader *reader, char character);
/* The next token is a digit (of a node number). */
bool text_at_digit(TextReader *reader);
/* The next token begins with this character. */
bool text_at_character(TextReader *reader, char character);
const char *text_word(TextReader *reader);
/* A word of a list that ends with NULL; its index. */
int text_choice(TextReader *reader, const char *const *words, const char *what);
const char *text_string(TextReader *reader);
int64_t text_integer(TextReader *reader, int64_t lowest, int64_t highest);
uint64_t text_unsigned(TextReader *reader);
double text_number(TextReader *reader);
/* "[1, 2]": at most `most` of them; returns how many. */
int text_integers(TextReader *reader, int most, int64_t *values);
int text_numbers(TextReader *reader, int most, double *values);
/* 'at "file:line:column"' or nothing. The location's start is an index into places until text_resolve. */
Location text_location(TextReader *reader);
/* Makes up blank files in which every place read has its line and column. */
void text_make_files(TextReader *reader);
/* Turns what text_location returned into a location in such a file. */
void text_resolve(const TextReader *reader, Location *location);

#endif
