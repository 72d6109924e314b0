// Package visible decides what a reader may see of a message.
//
// It has two halves. [Clean] takes out what a model wrote for machines: leaked
// reasoning, tool calls in prose, control tokens, remembered context. [Redact]
// masks what looks like a credential. Both give what OpenClaw 2026.7.35 gives
// (spec/session-tools.md 2.4 and 2.6), with one difference: long texts are
// scanned whole, where OpenClaw cuts them into pieces and misses a token that
// lies across the cut.
//
// Texts are Go strings that hold lone surrogates as three bytes each (WTF-8),
// as span.Text makes them. Lengths are UTF-16 units. White space, word
// boundaries and case follow JavaScript's regular expressions. Every function
// takes time linear in its text, whatever the text holds.
package visible
