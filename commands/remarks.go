package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"oc/store"
	"oc/store/span"
	"oc/store/sqlfile"
)

// failure is a store that could not be read.
type failure struct {
	agent, path string
	err         error
}

// failures are what makes an answer a partial one.
type failures []failure

// add notes a store that could not be opened, or whose other era could not be.
func (f *failures) add(s *store.Sessions, err error) {
	if err != nil {
		*f = append(*f, failure{s.Agent, s.Path, storeError(s, err)})
	} else if o := s.Other; o != nil && o.Rows < 0 {
		*f = append(*f, failure{s.Agent, o.Path, fmt.Errorf("agent %s also has a %s-era store that cannot be read: %s: %s", s.Agent, o.Era, o.Path, o.Why)})
	}
}

// print writes errors[] of a partial answer.
func (f failures) print(p *span.Printer) {
	if len(f) == 0 {
		return
	}
	p.Key("errors").Array()
	for _, x := range f {
		p.Object()
		p.Key("agentId").String(x.agent)
		p.Key("path").String(x.path)
		p.Key("message").String(x.err.Error())
		p.End()
	}
	p.End()
}

// tell says each on standard error; the answer is partial then, exit 1.
func (c *Call) tell(f failures) error {
	for _, x := range f {
		c.Warnf("%v", x.err)
	}
	if len(f) > 0 {
		return Status(ExitFailed)
	}
	return nil
}

// all is the error of an answer that could not be given at all: each store on a line of its own, and in one document.
func (c *Call) all(f failures) error {
	for _, x := range f[:len(f)-1] {
		c.Warnf("%v", x.err)
	}
	last := f[len(f)-1].err
	if len(f) == 1 {
		return last
	}
	var others []map[string]string
	for _, x := range f {
		others = append(others, map[string]string{"agentId": x.agent, "path": x.path, "message": x.err.Error()})
	}
	exit, code := classify(last)
	return &Error{Exit: exit, Code: code, Err: last, Details: map[string]any{"errors": others}}
}

// storeError says what a store that cannot be read means, and what can be done.
func storeError(s *store.Sessions, err error) error {
	damaged := func(path string, details map[string]any) error {
		details["path"] = path
		return &Error{Exit: ExitFailed, Code: "damaged", Err: fmt.Errorf("%w; nothing was changed, the transcripts beside it are untouched", err), Details: details}
	}
	var damage *store.Damage
	var database *sqlfile.Error
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &damage):
		return damaged(damage.Path, map[string]any{"byte": damage.Offset, "size": damage.Size, "reason": damage.Reason})
	case errors.Is(err, sqlfile.ErrBusy):
		return Busyf("agent %s: %w", s.Agent, heldBy(err))
	case errors.As(err, &database) && (errors.Is(err, sqlfile.ErrCorrupt) || errors.Is(err, sqlfile.ErrNotDatabase)):
		return damaged(database.Path, map[string]any{"reason": database.Error()})
	}
	return Failf("agent %s: %w", s.Agent, err)
}

// remark tells what is to know of a store beside its rows: the other era, a schema that oc does not know, a quarantine.
func (c *Call) remark(s *store.Sessions) {
	if o := s.Other; o != nil && o.Rows >= 0 && !c.both() {
		c.Warnf("agent %s also has %s of the %s era in %s; they are not among these (see them with --store %s)", s.Agent, counted(o.Rows), o.Era, o.Path, o.Path)
	}
	if s.Schema.Newer {
		c.Warnf("%s has schema %d, newer than oc knows; it was read as far as it is understood", s.Path, s.Schema.UserVersion)
	}
	if s.Quarantine != "" {
		c.Warnf("OpenClaw has put %s in quarantine and does not open it: %s", s.Path, s.Quarantine)
	}
}

// both tells whether the answer is of both eras.
func (c *Call) both() bool {
	return find(c.Path[len(c.Path)-1].Flags, "--"+bothErasFlag.Name) != nil && c.Bool(bothErasFlag.Name)
}

// counted is a number of sessions in words.
func counted(n int) string {
	switch {
	case n < 0:
		return "an unknown number of sessions"
	case n == 1:
		return "1 session"
	}
	return fmt.Sprintf("%d sessions", n)
}

// strangers tells which agents are on disk but not in the configuration.
func (c *Call) strangers(all []store.Stranger) {
	var names []string
	for _, s := range all {
		names = append(names, fmt.Sprintf("%s with %s", s.Agent, counted(s.Rows)))
	}
	if len(names) > 0 {
		c.Notef("on disk but not in the configuration: %s (see oc agents list)", strings.Join(names, ", "))
	}
}
