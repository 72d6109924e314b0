package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

func TestParseFrame(t *testing.T) {
	for text, want := range map[string]frame{
		` {"type":"res","id":"7","ok":true,"payload":{"a":1}} `:       {kind: "res", id: "7", ok: true, payload: []byte(`{"a":1}`)},
		`{"ty\u0070e":"res","id":"7","ok":1,"error":null}`:            {kind: "res", id: "7", failure: []byte("null")},
		`{"type":"event","event":"tick","payload":[],"payload":null}`: {kind: "event", event: "tick", payload: []byte("null")},
		`{"type":"res","id":7}`:                                       {kind: "res"},
		`{"type":"new","x":{}}`:                                       {kind: "new"},
	} {
		got, err := parseFrame([]byte(text))
		if err != nil || got.kind != want.kind || got.id != want.id || got.ok != want.ok || got.event != want.event || !bytes.Equal(got.payload, want.payload) || !bytes.Equal(got.failure, want.failure) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", " ", "{", "[]", "null", `"x"`, "{}", `{"type":1}`, `{"type":""}`, `{"type":"res"}x`, "\x00", "{\"type\":\"res\",}", `{"id":"1"}`} {
		if f, err := parseFrame([]byte(text)); !errors.Is(err, errFrame) {
			t.Errorf("%q: %+v, %v", text, f, err)
		}
	}
}

// Frames of any bytes, whole and through the reader, with and without a
// listener for events.
func FuzzFrame(f *testing.F) {
	for _, release := range releases {
		files, _ := filepath.Glob(filepath.Join("testdata", release, "frames", "*.ndjson"))
		for _, file := range files[:min(len(files), 12)] {
			raw, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			for _, l := range bytes.Split(raw, []byte("\n")) {
				f.Add(l)
			}
		}
	}
	f.Add([]byte(`{"type":"event","event":"tick"}`))
	f.Add([]byte(`{"type":"res","id":"1","ok":false,"error":{"code":"X","details":{"code":1},"retryAfterMs":-1}}`))
	f.Add([]byte(`{"type":"res","id":"1","ok":true,"payload":{"type":"hello-ok","protocol":4e0,"policy":{"tickIntervalMs":1e308},"features":{"methods":[1,"a",null]}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		const limit = 1 << 12
		for _, wanted := range []bool{true, false} {
			got, skipped, err := readFrame(bytes.NewReader(b), limit, wanted)
			if err == nil && !skipped && len(b) > limit {
				t.Fatal("a frame over the limit was taken")
			}
			if skipped && (wanted || !bytes.HasPrefix(b, eventStart)) {
				t.Fatal("passed over what is no event")
			}
			if err != nil {
				continue
			}
			h, ok := parseHello(got.payload)
			if h.Tick < 0 || h.Uptime < 0 || h.MaxPayload < 0 || (ok && len(got.payload) == 0) {
				t.Fatalf("%+v", h)
			}
			e := failure(got.failure, []Secret{"type"})
			if e.Retry < 0 || strings.Contains(e.Error(), "type") {
				t.Fatalf("%v", e)
			}
			(&dialing{}).toolAnswer(200, b, Tool{})
		}
	})
}

// A flood of events costs no memory, and an answer still comes through.
func TestFlood(t *testing.T) {
	event := []byte(`{"type":"event","event":"agent","payload":"` + strings.Repeat("x", 1<<20) + `"}`)
	o := gatewayThat(t, "/s", func(ctx context.Context, ws *websocket.Conn, m message) {
		for range 64 {
			if ws.Write(ctx, websocket.MessageText, event) != nil {
				return
			}
		}
		say(ctx, ws, message{Type: "res", ID: m.ID, OK: yes(true)})
	})
	c := dial(t, o)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	within(t, 20*time.Second, "call", func() {
		if _, err := c.Call(t.Context(), "x", nil); err != nil {
			t.Error(err)
		}
	})
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 { // both sides of it
		t.Errorf("64 MiB of events made %d MiB", grown>>20)
	}
}

func TestReadFrameErrors(t *testing.T) {
	broken := io.MultiReader(strings.NewReader(`{"type":"res"`), iotestError{})
	if _, _, err := readFrame(broken, 100, true); !errors.Is(err, io.ErrNoProgress) {
		t.Error(err)
	}
	if _, _, err := readFrame(io.MultiReader(bytes.NewReader(eventStart), iotestError{}), 100, false); !errors.Is(err, io.ErrNoProgress) {
		t.Error(err)
	}
}

type iotestError struct{}

func (iotestError) Read([]byte) (int, error) { return 0, io.ErrNoProgress }
