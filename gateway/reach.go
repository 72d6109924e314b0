package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"time"

	"oc/store/lock"
)

// Reach finds out who makes a change: it looks for the owner of the state,
// speaks to the gateway where the flags allow it, and applies Decide. Only when
// the way is Delegate is there a connection, which the caller closes; it was let
// in with o.Scopes. A local gateway that its own lock shows at another port than
// o.Target's is spoken to there. A store that belongs to no configured state is
// asked about with Offline: nobody's address is known then.
func Reach(ctx context.Context, w Where, m lock.Machine, now time.Time, o Options, f Flags) (*Conn, Decision) {
	s := newSearch(w, m, now)
	s.files()
	if f.Offline {
		return nil, Decide(s.rest(ctx), Contact{}, f)
	}
	type met struct {
		conn *Conn
		err  error
		host string
	}
	dial := func(at Ownership) (m met) {
		t := o
		if at.Life == Alive && at.Port != 0 && t.Target.Local && at.Port != t.Target.Port {
			t.Target = t.Target.at(at.Port, fmt.Sprintf("lock of process %d", at.PID))
		}
		m.conn, m.err = Dial(ctx, t)
		m.host = host(t.Target.URL)
		return m
	}
	var owner Ownership
	var there met
	if found := s.out; found.Life == Alive && found.Port != 0 { // nobody else can say another port: it is called while the processes are looked at
		answer := make(chan met, 1)
		go func() { answer <- dial(found) }()
		owner = s.rest(ctx)
		there = <-answer
	} else {
		owner = s.rest(ctx)
		there = dial(owner)
	}
	conn, err := there.conn, there.err
	c := Contact{Tried: true, Host: there.host}
	if err != nil {
		if !errors.As(err, &c.Err) {
			c.Err = &Error{Fault: Strange, Host: c.Host, Says: said(err.Error()), Err: err}
		}
		return nil, Decide(owner, c, f)
	}
	c.Answered, c.Version, c.StateDir = true, conn.Hello.Version, conn.Hello.StateDir
	c.SameState = c.StateDir != "" && sameDir(c.StateDir, w.StateDir)
	d := Decide(owner, c, f)
	if d.Way != Delegate {
		_ = conn.Close()
		return nil, d
	}
	return conn, d
}

// Meet connects to the gateway of the state, for what only a gateway can do, and
// says with which options: they are what InvokeTool takes. A local gateway that
// its own lock shows at another port than o.Target's is met there; one that has
// another state, or does not say which, is OtherState, and nothing is asked of
// it. Both releases say it to admins alone, so that a local one is asked for that
// scope. An address that somebody gave is taken at its word. The error is an
// *Error.
func Meet(ctx context.Context, w Where, m lock.Machine, now time.Time, o Options) (*Conn, Options, error) {
	if o.Target.Local && !slices.Contains(o.Scopes, Admin) {
		o.Scopes = append(slices.Clone(o.Scopes), Admin)
	}
	c, err := meet(ctx, w, o)
	if err == nil || !o.Target.Local || errors.Is(err, context.Canceled) {
		return c, o, err
	}
	owner := Owner(ctx, w, m, now)
	if owner.Life != Alive || owner.Port == 0 || owner.Port == o.Target.Port {
		if e := (*Error)(nil); errors.As(err, &e) && e.Fault == NoListener && owner.Life == Alive {
			e.fix = "process " + strconv.Itoa(owner.PID) + " owns the state and starts or stops: wait a moment, then try again"
		}
		return nil, o, err
	}
	o.Target = o.Target.at(owner.Port, fmt.Sprintf("lock of process %d", owner.PID))
	c, err = meet(ctx, w, o)
	return c, o, err
}

func meet(ctx context.Context, w Where, o Options) (*Conn, error) {
	c, err := Dial(ctx, o)
	if err != nil || !o.Target.Local {
		return c, err
	}
	dir := c.Hello.StateDir
	if dir != "" && sameDir(dir, w.StateDir) {
		return c, nil
	}
	_ = c.Close()
	e := &Error{Fault: OtherState, Doing: "connect to", Host: host(o.Target.URL), Says: "it does not say which state it has"}
	if dir != "" {
		e.Says = "it has the state " + said(dir)
	}
	return nil, e
}

// at is the same gateway at another port.
func (t Target) at(port int, source string) Target {
	u, err := url.Parse(t.URL)
	if err != nil {
		return t
	}
	u.Host = "127.0.0.1:" + strconv.Itoa(port)
	t.URL, t.Port, t.Source = u.String(), port, source
	return t
}

// sameDir compares what a gateway says of itself with what is on this disk.
func sameDir(a, b string) bool {
	if resolve(a) == resolve(b) {
		return true
	}
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}
