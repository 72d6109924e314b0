package gateway

import (
	"fmt"
	"slices"
	"strings"
)

// Contact is what came of speaking to the gateway's address.
type Contact struct {
	Tried    bool   // a connection was tried
	Answered bool   // a gateway let oc in
	Host     string // host:port
	Err      *Error // why there is no answer, when it was tried

	Version   string // of the gateway that answered
	StateDir  string // that it says it owns; empty: it does not say
	SameState bool   // StateDir is the state asked about
}

// Flags are what the user said about it.
type Flags struct {
	Offline       bool // never connect
	Store         bool // a store given by its path: the change is made here or not at all
	BesideGateway bool // write although a gateway lives
	SQLite        bool // the sessions are in a database, which a living gateway keeps locked
}

// Way is how a change is made.
type Way string

const (
	Local    Way = "local"
	Delegate Way = "gateway" // call the gateway
	Refuse   Way = "refuse"  // change nothing
)

// Decision is what the delegation rule says.
type Decision struct {
	Way  Way
	Exit Exit     // of a refusal: busy or refused
	Saw  []string // what it rests on, one sentence each
	Try  string   // of a refusal: what to do

	gist  string // the most telling of Saw
	cause error  // why there was no answer
}

// Err is a refusal as an error, else nil.
func (d Decision) Err() error {
	if d.Way != Refuse {
		return nil
	}
	return &Refusal{d}
}

// Refusal is the error of a change that was not made because somebody else may
// own the state.
type Refusal struct{ Decision }

func (r *Refusal) Error() string {
	return fmt.Sprintf("nothing was changed: %s: %s", r.gist, r.Try)
}

// Unwrap gives the failure to reach the gateway, an *Error, if there was one.
func (r *Refusal) Unwrap() error { return r.cause }

// Decide is the delegation rule: who makes a change of a state. It never lets
// two write at once, and never takes silence for absence:
//
//	nobody lives there and nothing listens            local
//	a gateway answers and has this state              delegate
//	anything else                                     refuse
//
// A wrong token, a silent listener and a gateway of another state are each a
// sign that somebody may own it. With Store a change is local or refused, with
// Offline it is decided by what is seen without a connection. BesideGateway
// makes it local where that can be done at all: in the file era.
func Decide(o Ownership, c Contact, f Flags) Decision {
	d := Decision{Saw: signs(o)}
	gist := d.Saw[:min(len(d.Saw), 1)]
	if c.Tried {
		d.Saw = append(d.Saw, contact(c))
		gist = append(slices.Clone(gist), contact(c))
	}
	d.gist = strings.Join(gist, "; ")
	if c.Err != nil {
		d.cause = c.Err
	}
	beside := f.BesideGateway && !f.SQLite
	refuse := func(exit Exit, try string) Decision {
		if beside {
			d.Way = Local
			return d
		}
		if f.BesideGateway {
			try = "--beside-gateway does not help, a gateway keeps the databases locked: " + try
		} else if f.Store && !f.SQLite {
			try += ", or give --beside-gateway"
		}
		d.Way, d.Exit, d.Try = Refuse, exit, try
		return d
	}
	var nobody bool
	switch {
	case c.Answered && c.SameState && !f.Store && !f.BesideGateway:
		d.Way = Delegate
		return d
	case c.Answered && c.SameState && !f.Store:
		return refuse(ExitRefused, "leave it out to let the gateway make the change")
	case c.Answered && c.SameState:
		return refuse(ExitRefused, "stop the gateway first")
	case c.Answered && c.StateDir == "":
		return refuse(ExitRefused, "it does not say which state it has: stop it, or give --offline if it is another's")
	case c.Answered:
		return refuse(ExitRefused, "give the address of this state's gateway, or --offline if it has none")
	case !c.Tried:
		nobody = true
	case c.Err == nil || c.Err.Fault == Interrupted:
		return refuse(ExitBusy, "try again")
	case c.Err.Fault == NoListener:
		nobody = true
	}
	switch {
	case nobody && o.Life == None:
		d.Way = Local
		if len(d.Saw) == 0 {
			d.Saw = []string{"nobody owns the state"}
		}
		return d
	case nobody && o.Life == Alive && c.Tried:
		return refuse(ExitBusy, "wait until it is ready or done, then try again")
	case nobody && o.Life == Alive:
		return refuse(ExitRefused, "stop it first, or let it make the change: leave out --offline and --store")
	case nobody:
		return refuse(ExitRefused, "look whether a gateway runs, and stop it")
	}
	try := c.Err.Try()
	if try == "" {
		try = "look at the gateway's log"
	}
	if o.Life == None {
		try += ", or give --offline if that is not this state's gateway"
	}
	return refuse(c.Err.Exit(), try)
}

// signs are the pieces of evidence that point at somebody.
func signs(o Ownership) (out []string) {
	for _, e := range o.Evidence {
		if e.Points == None {
			continue
		}
		says := e.Says
		if e.Path != "" {
			says = e.Path + ": " + says
		}
		out = append(out, says)
	}
	if len(out) == 0 && o.Life != None {
		out = append(out, "somebody owns the state")
	}
	return out
}

func contact(c Contact) string {
	switch {
	case !c.Answered && c.Err == nil:
		return "no answer from " + c.Host
	case !c.Answered:
		return fmt.Sprintf("%s: %s", c.Host, c.Err.what())
	case c.SameState:
		return fmt.Sprintf("the gateway of this state, %s, answers at %s", c.Version, c.Host)
	case c.StateDir == "":
		return fmt.Sprintf("a gateway, %s, answers at %s", c.Version, c.Host)
	}
	return fmt.Sprintf("a gateway, %s, answers at %s and has another state, %s", c.Version, c.Host, said(c.StateDir))
}
