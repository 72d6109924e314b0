package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oc/store/lock"

	"github.com/coder/websocket"
)

// Scenario S18: somebody else may be writing. A dummy listener in all its
// variants, with and without a living owner's lock.
func TestReach(t *testing.T) {
	silent := func(context.Context, *websocket.Conn, message) {}
	type where struct{ state, link string }
	gateways := map[string]func(*testing.T, where) Options{
		"answers":            func(t *testing.T, w where) Options { return gatewayThat(t, w.state, silent) },
		"by another name":    func(t *testing.T, w where) Options { return gatewayThat(t, w.link, silent) },
		"lies":               func(t *testing.T, w where) Options { return gatewayThat(t, "/somewhere/else", silent) },
		"does not say":       func(t *testing.T, w where) Options { return gatewayThat(t, "", silent) },
		"refuses":            func(t *testing.T, _ where) Options { return closedPort(t) },
		"accepts and hangs":  func(t *testing.T, _ where) Options { return tcp(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }) },
		"accepts and closes": func(t *testing.T, _ where) Options { return tcp(t, func(net.Conn) {}) },
		"wrong token": func(t *testing.T, _ where) Options {
			o, _ := replay(t, "2026.7.35", "handshake/07-cli-bad-token")
			return o
		},
		"nothing to show": func(t *testing.T, w where) Options {
			o := gatewayThat(t, w.state, silent)
			o.Credentials = CredentialsFor(o.Target, Given{}, vars(), Settings{})
			return o
		},
		"nothing to show, refuses": func(t *testing.T, _ where) Options {
			o := closedPort(t)
			o.Credentials = CredentialsFor(o.Target, Given{}, vars(), Settings{})
			return o
		},
	}
	const local, delegate, busy, refused = "local", "gateway", "refuse busy", "refuse refused"
	for _, c := range []struct {
		gateway string
		owner   bool
		flags   Flags
		want    string
	}{
		{"answers", false, Flags{}, delegate},
		{"answers", true, Flags{}, delegate},
		{"by another name", false, Flags{}, delegate},
		{"lies", false, Flags{}, refused},
		{"lies", true, Flags{}, refused},
		{"does not say", false, Flags{}, refused},
		{"refuses", false, Flags{}, local},
		{"refuses", true, Flags{}, busy},
		{"accepts and hangs", false, Flags{}, busy},
		{"accepts and hangs", true, Flags{}, busy},
		{"accepts and closes", false, Flags{}, busy},
		{"wrong token", false, Flags{}, refused},
		{"wrong token", true, Flags{}, refused},
		{"nothing to show", false, Flags{}, refused},
		{"nothing to show, refuses", false, Flags{}, local},
		{"answers", false, Flags{Offline: true}, local}, // never asked
		{"answers", true, Flags{Offline: true}, refused},
		{"answers", false, Flags{Store: true}, refused},
		{"refuses", false, Flags{Store: true}, local},
		{"answers", true, Flags{BesideGateway: true}, local},
		{"answers", true, Flags{Store: true, BesideGateway: true}, local},
		{"answers", true, Flags{Store: true, BesideGateway: true, SQLite: true}, refused},
	} {
		t.Run(fmt.Sprintf("%s/owner=%t/%+v", c.gateway, c.owner, c.flags), func(t *testing.T) {
			h := newHouse(t)
			link := filepath.Join(t.TempDir(), "link")
			if err := os.Symlink(h.w.StateDir, link); err != nil {
				t.Fatal(err)
			}
			var m lock.Machine = none{}
			if c.owner {
				h.stateLock("gateway.state.lock", `{"pid":4242,"createdAt":"2026-11-30T13:31:40.056Z","startTime":9}`)
				m = one{pid: 4242, start: 9}
			}
			o := gateways[c.gateway](t, where{h.w.StateDir, link})
			o.Budget = time.Second
			var conn *Conn
			var d Decision
			within(t, 10*time.Second, "reach", func() {
				conn, d = Reach(t.Context(), h.w, m, time.Date(2026, 11, 30, 13, 45, 0, 0, time.UTC), o, c.flags)
			})
			if got := strings.TrimSpace(string(d.Way) + " " + string(d.Exit)); got != c.want {
				t.Errorf("%s, want %s: %v %s", got, c.want, d.Saw, d.Try)
			}
			if (conn != nil) != (d.Way == Delegate) {
				t.Errorf("a connection: %t", conn != nil)
			}
			if err := d.Err(); err != nil && strings.Contains(err.Error(), string(testToken)) {
				t.Error(err)
			}
			if conn != nil {
				conn.Close()
			}
		})
	}
}

// A gateway on another port than the configuration has is found by its lock.
func TestReachByLock(t *testing.T) {
	h := newHouse(t)
	o := gatewayThat(t, h.w.StateDir, func(context.Context, *websocket.Conn, message) {})
	h.stateLock("gateway.state.lock", fmt.Sprintf(`{"pid":4242,"createdAt":"2026-11-30T13:31:40.056Z","startTime":9,"port":%d}`, o.Target.Port))
	wrong := closedPort(t)
	o.Target = wrong.Target
	conn, d := Reach(t.Context(), h.w, one{pid: 4242, start: 9}, time.Date(2026, 11, 30, 13, 45, 0, 0, time.UTC), o, Flags{})
	if d.Way != Delegate {
		t.Fatalf("%+v", d)
	}
	conn.Close()
	o.Target.Local = false // an address that somebody gave is not second-guessed
	if _, d := Reach(t.Context(), h.w, one{pid: 4242, start: 9}, time.Date(2026, 11, 30, 13, 45, 0, 0, time.UTC), o, Flags{}); d.Way != Refuse || d.Exit != ExitBusy {
		t.Errorf("%+v", d)
	}
}

// Whoever owns the state and does not listen is waited for, and nobody is told
// to start another gateway; without an owner that is the advice.
func TestMeetOwnerThatDoesNotListen(t *testing.T) {
	h := newHouse(t)
	o := closedPort(t)
	_, _, err := Meet(t.Context(), h.w, one{}, time.Now(), o)
	if err == nil || !strings.Contains(err.Error(), "start the gateway") {
		t.Errorf("without an owner: %v", err)
	}
	h.stateLock("gateway.state.lock", fmt.Sprintf(`{"pid":4242,"createdAt":"2026-11-30T13:31:40.056Z","startTime":9,"port":%d}`, o.Target.Port))
	_, _, err = Meet(t.Context(), h.w, one{pid: 4242, start: 9}, time.Date(2026, 11, 30, 13, 45, 0, 0, time.UTC), o)
	if err == nil || !strings.Contains(err.Error(), "process 4242") || strings.Contains(err.Error(), "start the gateway") {
		t.Errorf("with one: %v", err)
	}
}

// A connection that does not come about in time is not the network's fault.
func TestNoTimeToConnect(t *testing.T) {
	o := tcp(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	o.Budget = time.Nanosecond
	_, err := Dial(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "in time") && !strings.Contains(err.Error(), "in the time that it was given") {
		t.Errorf("%v", err)
	}
}

// Killing the gateway at any moment of a call leaves it known whether the
// request had gone out, and never sends it twice.
func TestKilledAtAnyMoment(t *testing.T) {
	hello := greeting(t, "2026.7.35")
	for after := 0; after <= 6; after++ {
		var requests atomic.Int32
		o := listen(t, func(ctx context.Context, ws *websocket.Conn) {
			steps := []func() bool{
				func() bool { return ws.Write(ctx, websocket.MessageText, []byte(challenge)) == nil },
				func() bool { _, _, err := ws.Read(ctx); return err == nil },
				func() bool { return say(ctx, ws, message{Type: "res", ID: "1", OK: yes(true), Payload: hello}) },
				func() bool {
					_, _, err := ws.Read(ctx)
					if err == nil {
						requests.Add(1)
					}
					return err == nil
				},
				func() bool { return say(ctx, ws, message{Type: "event", Event: "tick"}) },
				func() bool {
					return say(ctx, ws, message{Type: "res", ID: "2", OK: yes(true), Payload: json.RawMessage(`{"ok":true}`)})
				},
			}
			for _, step := range steps[:min(after, len(steps))] {
				if !step() {
					return
				}
			}
		})
		within(t, 10*time.Second, "call", func() {
			c, err := Dial(t.Context(), o)
			if after < 3 {
				if e, ok := err.(*Error); !ok || e.Sent || e.Fault != HungUp {
					t.Errorf("killed after step %d: %v", after, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_, err = c.Do(t.Context(), Cleanup{})
			switch e, _ := err.(*Error); {
			case after == 6 && err != nil:
				t.Errorf("answered: %v", err)
			case after < 6 && e == nil:
				t.Errorf("killed after step %d: %v", after, err)
			case after >= 4 && after < 6 && !e.Sent:
				t.Errorf("killed after step %d, and the request had gone: %v", after, err)
			}
			if n := requests.Load(); n > 1 {
				t.Errorf("sent %d times", n)
			}
		})
	}
}

func TestReachInterrupted(t *testing.T) {
	h := newHouse(t)
	o := tcp(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, d := Reach(ctx, h.w, none{}, time.Now(), o, Flags{})
	if err := d.Err(); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v: %v", d, err)
	}
}

// A session that has a turn is busy; what else a gateway calls unavailable is
// a failure.
func TestActiveSessionIsBusy(t *testing.T) {
	for says, want := range map[string]Exit{"Session a is still active; try again in a moment.": ExitBusy, "Error: disk is full": ExitFailed} {
		if e := (&Error{Fault: Failed, Code: "UNAVAILABLE", Says: says}); e.Exit() != want {
			t.Errorf("%s: %s", says, e.Exit())
		}
	}
}
