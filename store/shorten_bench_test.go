package store

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A compaction of a transcript of 100 MB is planned: 26,000 turns with a tool each. The goal is under 1 s and 100 MiB.
func BenchmarkPlanCompaction(b *testing.B) {
	path := filepath.Join(b.TempDir(), "11111111-1111-4111-8111-111111111111.jsonl")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriter(f)
	fmt.Fprintln(w, `{"type":"session","version":3,"id":"s","cwd":"/srv"}`)
	parent := "null"
	row := func(i, k int, message string) {
		id := fmt.Sprintf(`"m%06d%d"`, i, k)
		fmt.Fprintf(w, `{"type":"message","id":%s,"parentId":%s,"timestamp":"2026-01-05T09:00:00.000Z","message":%s}`+"\n", id, parent, message)
		parent = id
	}
	long := strings.Repeat("what the tool printed, line by line\\n", 96)
	for i := range 26_000 {
		row(i, 0, `{"role":"user","content":[{"type":"text","text":"please look at it once more"}]}`)
		row(i, 1, fmt.Sprintf(`{"role":"assistant","content":[{"type":"toolCall","id":"c%d","name":"read","arguments":{"path":"/srv/x"}}],"stopReason":"toolUse"}`, i))
		row(i, 2, fmt.Sprintf(`{"role":"toolResult","toolCallId":"c%d","toolName":"read","content":[{"type":"text","text":"%s"}]}`, i, long))
		row(i, 3, `{"role":"assistant","content":[{"type":"text","text":"It is as it was."}],"stopReason":"stop"}`)
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		b.Fatal(err)
	}
	f.Close()
	b.SetBytes(info.Size())
	b.ReportAllocs()
	for b.Loop() {
		c, err := OpenCopy(path)
		if err != nil {
			b.Fatal(err)
		}
		fill, err := c.Outline(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		x, err := fill.Shorten(20_000, 200_000)
		if err != nil || len(x.Chunks) < 100 {
			b.Fatal(err)
		}
	}
}
