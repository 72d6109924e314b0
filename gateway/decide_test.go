package gateway

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestDecide(t *testing.T) {
	none := Ownership{Life: None}
	alive := Ownership{Life: Alive, PID: 7, Role: "gateway", Evidence: []Evidence{{Kind: StateLock, Path: "/s/gateway.state.lock", Points: Alive, Says: "gateway lock, held: process 7 lives"}}}
	maybe := Ownership{Life: Maybe, Evidence: []Evidence{{Kind: Shared, Path: "/s", Points: Maybe, Says: "on NFS: a gateway elsewhere would not be seen"}, {Kind: Coordinator, Path: "/c", Points: None, Says: "nobody holds it"}}}
	failed := func(f Fault) Contact { return Contact{Tried: true, Host: "h:1", Err: &Error{Fault: f}} }
	ours := Contact{Tried: true, Answered: true, Host: "h:1", Version: "2026.9.6", StateDir: "/s", SameState: true}
	theirs := Contact{Tried: true, Answered: true, Host: "h:1", Version: "2026.9.6", StateDir: "/other"}
	mute := Contact{Tried: true, Answered: true, Host: "h:1", Version: "2026.9.6"}
	untried := Contact{}
	wrong := Contact{Tried: true, Host: "h:1", Err: &Error{Fault: Denied, Detail: "AUTH_TOKEN_MISMATCH", Says: "unauthorized"}}
	const local, delegate, busy, refused = "local", "gateway", "refuse busy", "refuse refused"
	for name, c := range map[string]struct {
		o    Ownership
		c    Contact
		f    Flags
		want string
		says string
	}{
		// The table, for a configured store.
		"nobody, nothing listens":       {none, failed(NoListener), Flags{}, local, "nothing listens"},
		"it answers and has this state": {none, ours, Flags{}, delegate, "gateway of this state, 2026.9.6, answers at h:1"},
		"and its lock is seen":          {alive, ours, Flags{SQLite: true}, delegate, "process 7 lives"},
		"and it may live elsewhere":     {maybe, ours, Flags{}, delegate, "NFS"},
		"wrong token":                   {none, wrong, Flags{}, refused, "use its gateway.auth.token"},
		"wrong token, owner seen":       {alive, wrong, Flags{}, refused, "process 7 lives"},
		"no credentials":                {none, failed(NoCredentials), Flags{}, refused, "--offline"},
		"silent":                        {none, failed(Silent), Flags{}, busy, "no answer in time"},
		"silent, owner seen":            {alive, failed(Silent), Flags{}, busy, "no answer in time"},
		"closed while it greets":        {none, failed(HungUp), Flags{}, busy, "closed the connection"},
		"still starting":                {alive, failed(Starting), Flags{}, busy, "still starting"},
		"not a gateway":                 {none, failed(Strange), Flags{}, refused, "not answer as a gateway"},
		"unreachable":                   {none, failed(Unreachable), Flags{}, busy, "no connection"},
		"another state":                 {none, theirs, Flags{}, refused, "another state, /other"},
		"another state, owner seen":     {alive, theirs, Flags{}, refused, "process 7 lives"},
		"it does not say which":         {none, mute, Flags{}, refused, "does not say which state"},
		"refused, owner by lock":        {alive, failed(NoListener), Flags{}, busy, "wait until it is ready"},
		"refused, may live elsewhere":   {maybe, failed(NoListener), Flags{}, refused, "NFS"},
		"interrupted":                   {none, failed(Interrupted), Flags{}, busy, "try again"},
		// --offline never connects.
		"offline, nobody":  {none, untried, Flags{Offline: true}, local, "nobody owns"},
		"offline, owner":   {alive, untried, Flags{Offline: true}, refused, "leave out --offline"},
		"offline, perhaps": {maybe, untried, Flags{Offline: true}, refused, "look whether"},
		// --store is local or nothing.
		"store, nobody":              {none, failed(NoListener), Flags{Store: true}, local, "nothing listens"},
		"store, its gateway answers": {alive, ours, Flags{Store: true}, refused, "--beside-gateway"},
		"store, owner, offline":      {alive, untried, Flags{Store: true, Offline: true}, refused, "--beside-gateway"},
		"store, silent":              {none, failed(Silent), Flags{Store: true}, busy, "--beside-gateway"},
		"store, sqlite":              {alive, ours, Flags{Store: true, SQLite: true}, refused, "stop the gateway"},
		// --beside-gateway, in the file era alone.
		"beside":                  {alive, ours, Flags{BesideGateway: true}, local, "answers at"},
		"beside, store":           {alive, ours, Flags{BesideGateway: true, Store: true}, local, "answers at"},
		"beside, silent":          {none, failed(Silent), Flags{BesideGateway: true}, local, "no answer"},
		"beside, offline":         {alive, untried, Flags{BesideGateway: true, Offline: true}, local, "process 7 lives"},
		"beside, sqlite, answers": {alive, ours, Flags{BesideGateway: true, SQLite: true}, refused, "leave it out"},
		"beside, sqlite, store":   {alive, ours, Flags{BesideGateway: true, SQLite: true, Store: true}, refused, "does not help"},
		"beside, sqlite, silent":  {none, failed(Silent), Flags{BesideGateway: true, SQLite: true}, busy, "does not help"},
		"beside, sqlite, nobody":  {none, failed(NoListener), Flags{BesideGateway: true, SQLite: true}, local, "nothing listens"},
	} {
		d := Decide(c.o, c.c, c.f)
		got := strings.TrimSpace(string(d.Way) + " " + string(d.Exit))
		text := strings.Join(d.Saw, "; ") + "; " + d.Try
		if got != c.want || !strings.Contains(text, c.says) {
			t.Errorf("%s: %s, want %s; %s", name, got, c.want, text)
		}
		if (d.Err() != nil) != (d.Way == Refuse) || len(d.Saw) == 0 {
			t.Errorf("%s: %+v", name, d)
		}
		if err := d.Err(); err != nil && (len(err.Error()) > 400 || !strings.HasPrefix(err.Error(), "nothing was changed: ") || d.Try == "") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// No combination writes here while somebody may live there, unless the user
// said so, and none connects or delegates against the flags.
func TestDecideIsCareful(t *testing.T) {
	faults := []Fault{NoListener, Unreachable, Silent, HungUp, Starting, Denied, NoCredentials, Strange, Oversized, Failed, Unsupported, Interrupted}
	rapid.Check(t, func(t *rapid.T) {
		flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
		o := Ownership{Life: rapid.SampledFrom([]Life{None, Alive, Maybe}).Draw(t, "life")}
		f := Flags{flag("offline"), flag("store"), flag("beside"), flag("sqlite")}
		c := Contact{Tried: !f.Offline}
		if c.Tried {
			if c.Answered = flag("answered"); c.Answered {
				c.SameState = flag("same")
				c.StateDir = rapid.SampledFrom([]string{"", "/x"}).Draw(t, "dir")
			} else {
				c.Err = &Error{Fault: rapid.SampledFrom(faults).Draw(t, "fault")}
			}
		}
		d := Decide(o, c, f)
		refusedDial := c.Err != nil && c.Err.Fault == NoListener
		quiet := o.Life == None && (!c.Tried || refusedDial)
		beside := f.BesideGateway && !f.SQLite
		state := fmt.Sprintf("%+v %+v %+v: %+v", o, c, f, d)
		switch d.Way {
		case Local:
			if !quiet && !beside {
				t.Fatal("writes beside somebody: " + state)
			}
		case Delegate:
			if f.Store || f.Offline || f.BesideGateway || !c.Answered || !c.SameState {
				t.Fatal("hands over against the flags: " + state)
			}
		case Refuse:
			if quiet || d.Exit == "" || d.Try == "" {
				t.Fatal("refuses without a reason: " + state)
			}
		}
	})
}
