// Package transcript reads one conversation: rows, findings, the tree, the
// active branch, what the model sees of it, tokens and usage.
//
// A transcript is JSON lines: a header and then entries that point at their
// parents. It comes from a file, a compressed archive or the rows of a
// database; a [Scanner] gives the same rows for all of them. Rows are spans of
// the bytes they stand in: a field is decoded when it is asked for, and a line
// of 80 MB costs a pass over its bytes. Nothing here writes.
//
// The rules are those of OpenClaw 2026.7.35 (spec/transcript.md) and, for rows
// of a database, 2026.9.6 (spec/sqlite-store.md 2.5). Every walk over parents
// ends, whatever they point at.
package transcript
