package commands

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"oc/config"
	"oc/store"
	"oc/store/lock"
	"oc/store/span"
	"oc/transcript/visible"
)

// talk is the conversation that a word on the command line means, and all that belongs to it.
type talk struct {
	l   *listing
	row *store.Row // nil for a copy, and for a transcript that no row names
	key string     // "" for these
	id  string
	all []*store.Conversation // the oldest first

	sight *sight
	era   map[*store.Conversation]store.Era // of each, where it is of both eras; nil else
}

// current is the transcript that is read where nothing else is asked for.
func (t *talk) current() *store.Conversation { return t.all[len(t.all)-1] }

// name is what the conversation is called in a sentence.
func (t *talk) name() string {
	switch {
	case t.key != "":
		return t.key
	case t.id != "":
		return t.id
	}
	return t.current().Path
}

// talk finds the conversation of a word: a session as Call.find finds it, else the session id of a transcript that no session names
// any more, else a file. With lineage it has all transcripts of the session, else one.
func (c *Call) talk(ctx context.Context, word string, lineage bool) (*talk, error) {
	return c.talkBeside(ctx, word, lineage, &talk{})
}

// talkBeside is talk for the second of two: what was gathered for the other is not gathered again.
func (c *Call) talkBeside(ctx context.Context, word string, lineage bool, other *talk) (*talk, error) {
	if path, ok := c.file(word); ok {
		var cfg *config.Config
		var err error
		if other.l != nil {
			cfg = other.l.cfg
		} else if cfg, err = c.load(); err != nil {
			return nil, err
		}
		if err := c.mayRead(ctx, cfg, path); err != nil {
			return nil, err
		}
		copied, err := store.OpenCopy(path)
		if err != nil {
			return nil, Failf("read %s: %w", path, err)
		}
		return &talk{l: &listing{cfg: cfg, now: c.nowMs()}, id: copied.ID, all: []*store.Conversation{copied}}, nil
	}
	l := other.l
	if l == nil || len(l.opened) == 0 {
		var err error
		if l, err = c.gather(ctx, !c.Given("agent") && !c.Given("store")); err != nil {
			return nil, err
		}
	}
	seen, err := c.sight(l.cfg, l.opened)
	if err != nil {
		return nil, err
	}
	if c.both() && l.others == nil {
		l.openOthers(ctx)
	}
	r, err := c.find(ctx, l, word)
	var e *Error
	if errors.As(err, &e) && e.Code == "elsewhere" {
		if found := store.Find(l.cfg, c.meant(l.cfg), l.others, word); len(found) == 1 {
			r, err = found[0], nil
		}
	}
	if errors.As(err, &e) && e.Code == "not-found" {
		for _, s := range l.opened {
			kept, problem := s.ByID(ctx, word)
			if problem != nil {
				return nil, storeError(s, problem)
			}
			if len(kept) > 0 {
				if !lineage {
					kept = kept[len(kept)-1:]
				}
				if !seen.searches(&store.Volume{Agent: s.Agent}) {
					return nil, &Error{Exit: ExitFailed, Code: "forbidden", Err: fmt.Errorf("the transcript %s is not for %s: %s", word, seen.Caller, seen.warning())}
				}
				return &talk{l: l, id: kept[0].ID, all: kept, sight: seen}, nil
			}
		}
	}
	if err != nil {
		return nil, err
	}
	if err := seen.reads(r); err != nil {
		return nil, err
	}
	t := &talk{l: l, row: r, key: r.Key, id: r.ID(), sight: seen}
	if lineage {
		t.all, err = r.Conversations(ctx)
	} else {
		var one *store.Conversation
		one, err = r.Conversation(ctx)
		t.all = []*store.Conversation{one}
	}
	if err != nil {
		return nil, storeError(r.Store(), err)
	}
	return t, t.twins(ctx, lineage)
}

// twins puts what the other era has of the session before the rest. What it has of the same transcripts is there once.
func (t *talk) twins(ctx context.Context, lineage bool) error {
	if len(t.l.others) == 0 {
		return nil
	}
	t.era = map[*store.Conversation]store.Era{}
	for _, one := range t.all {
		t.era[one] = t.row.Era()
	}
	if t.row.Store().Beside {
		return nil
	}
	for _, r := range t.row.Twins(t.l.others) {
		if t.sight.reads(r) != nil {
			continue
		}
		all, err := r.Conversations(ctx)
		if err != nil {
			return storeError(r.Store(), err)
		}
		if !lineage {
			all = all[len(all)-1:]
		}
		for _, one := range all {
			if one.Missing || slices.ContainsFunc(t.all, one.Same) {
				continue
			}
			t.era[one] = r.Era()
			t.all = slices.Insert(t.all, 0, one)
		}
	}
	return nil
}

// mayRead is an error where a file is the transcript of a session that is not for the one that asks. Files elsewhere are anybody's.
func (c *Call) mayRead(ctx context.Context, cfg *config.Config, path string) error {
	if seen, err := c.sight(cfg, nil); seen == nil {
		return err
	}
	l, err := c.library(ctx)
	if err != nil {
		return err
	}
	seen, err := c.sight(cfg, l.Stores)
	if err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	for _, v := range l.Volumes {
		at := v.Path
		if real, err := filepath.EvalSymlinks(at); err == nil {
			at = real
		}
		if at == path && !v.InDatabase() && !seen.searches(v) {
			return &Error{Exit: ExitFailed, Code: "forbidden", Err: fmt.Errorf("%s is not for %s: %s", path, seen.Caller, seen.warning())}
		}
	}
	return nil
}

// file tells whether a word names a file rather than a session: it looks like a path, and the file is there.
func (c *Call) file(word string) (path string, ok bool) {
	if !strings.ContainsAny(word, `/\`) && !strings.Contains(word, ".jsonl") {
		return "", false
	}
	if path = word; !filepath.IsAbs(path) {
		path = filepath.Join(c.Dir, path)
	}
	info, err := os.Stat(path)
	return path, err == nil && info.Mode().IsRegular()
}

// remarkTalk says what is to know of a conversation beside its messages.
func (c *Call) remarkTalk(t *talk) {
	for _, one := range t.all {
		switch state := c.state(one); state {
		case "missing":
			c.Warnf("%s has no transcript: %s is not there", t.name(), one)
		case "reset":
			if t.row != nil && one == t.current() {
				c.Warnf("the transcript of %s is not there; this is what a reset put away: %s", t.name(), one)
			}
		case "locked":
			c.Notef("%s is locked: somebody writes it", one)
		case "written":
			c.Notef("%s was written in the last five minutes; more may come", one)
		}
	}
	if t.row != nil {
		c.remark(t.row.Store())
	}
}

// state is one word for how a conversation stands: missing, locked, written (in the last five minutes), else why it is kept.
func (c *Call) state(one *store.Conversation) string {
	switch {
	case one.Missing:
		return "missing"
	case one.Reason != store.Current:
		return one.Reason
	case !one.InDatabase() && lock.Look(one.Path+lock.Suffix, lock.Local(), c.Now()).State.Holds():
		return "locked"
	case !one.At.IsZero() && c.Now().Sub(one.At) < 5*time.Minute && c.Now().After(one.At):
		return "written"
	}
	return one.Reason
}

// printTalk writes which transcripts were read.
func (c *Call) printTalk(p *span.Printer, t *talk, more ...*store.Conversation) {
	p.Key("transcripts").Array()
	for _, one := range append(slices.Clip(t.all), more...) {
		if one == nil {
			continue
		}
		p.Object()
		p.Key("path").String(one.Path)
		p.Key("sessionId").String(one.ID)
		p.Key("reason").String(one.Reason)
		if era, ok := t.era[one]; ok {
			p.Key("era").String(string(era))
		}
		p.Key("state").String(c.state(one))
		if p.Key("bytes"); one.Missing || one.Bytes < 0 {
			p.Null()
		} else {
			p.Int(one.Bytes)
		}
		stamp(p, "at", stampOf(one.At))
		p.End()
	}
	p.End()
}

func stampOf(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMilli()
}

// flaws are the broken rows of an answer, in words.
func flaws(p *store.Page) (texts []string) {
	for _, f := range p.Findings {
		where := fmt.Sprintf("byte %d", f.Byte)
		if f.At.Line > 0 {
			where = fmt.Sprintf("line %d, byte %d", f.At.Line, f.Byte)
		}
		text := fmt.Sprintf("%s: %s: %s", f.Of, where, f.Code)
		if f.Why != "" {
			text += " (" + f.Why + ")"
		}
		texts = append(texts, text)
	}
	return texts
}

// tellFlaws says which rows could not be read. The answer is a partial one then, except where all that is wrong is that the last line
// of a transcript that is still written has not come to its end.
func (c *Call) tellFlaws(p *store.Page) error {
	texts := flaws(p)
	for i, text := range texts {
		if i == 5 {
			c.Warnf("and %d more rows that cannot be read; --json names the first %d", p.Broken-i, len(texts))
			break
		}
		c.Warnf("%s", text)
	}
	for _, u := range p.Unread {
		c.Warnf("%s cannot be read: %v", u.Of, u.Err)
	}
	if p.Lost {
		c.Warnf("a row that moves the end of the branch points at a row that is not there; what is shown may be more than one branch")
	}
	if p.Broken > 1 || p.Broken == 1 && !p.Torn || len(p.Unread) > 0 {
		return Status(ExitFailed)
	}
	return nil
}

// printFlaws writes errors[].
func printFlaws(p *span.Printer, page *store.Page) {
	if page.Broken == 0 && len(page.Unread) == 0 {
		return
	}
	texts := flaws(page)
	p.Key("errors").Array()
	for _, u := range page.Unread {
		p.Object()
		p.Key("code").String("unreadable")
		p.Key("path").String(u.Of.Path)
		p.Key("message").String(fmt.Sprintf("%s cannot be read: %v", u.Of, u.Err))
		p.End()
	}
	for i, f := range page.Findings {
		p.Object()
		p.Key("code").String(string(f.Code))
		p.Key("path").String(f.Of.Path)
		if p.Key("line"); f.At.Line > 0 {
			p.Int(int64(f.At.Line))
		} else {
			p.Null()
		}
		p.Key("byte").Int(f.Byte)
		p.Key("message").String(texts[i])
		p.End()
	}
	p.End()
}

// redactor masks what looks like a credential, what logging.redactPatterns say, and the secrets that the configuration itself holds.
func (c *Call) redactor(cfg *config.Config) *visible.Redactor {
	r := &visible.Redactor{}
	if patterns, ok := cfg.Value("logging", "redactPatterns"); ok {
		for i, item := range patterns.Items {
			text, _ := item.Str()
			re, err := visible.Pattern(text)
			if err != nil { // the pattern itself may be what is secret
				c.Warnf("configuration: logging.redactPatterns[%d] is passed over: %v; write it in the syntax of RE2", i, err)
				continue
			}
			r.Patterns = append(r.Patterns, re)
		}
	}
	if root, ok := cfg.Value(); ok {
		secrets(root, cfg.Getenv, func(s string) { r.Values = append(r.Values, s) })
	}
	return r
}

// secrets finds the values in a configuration whose names say that they are secret, and the variables that it takes some from.
func secrets(n *config.Node, env func(string) string, found func(string)) {
	for _, item := range n.Items {
		secrets(item, env, found)
	}
	for _, m := range n.Members {
		name := strings.ToLower(m.Key)
		secret := false
		for _, end := range []string{"token", "password", "apikey", "secret", "privatekey", "api_key"} {
			secret = secret || strings.HasSuffix(name, end)
		}
		if text, ok := m.Value.Str(); ok && secret {
			found(text)
		} else if id, ok := m.Value.At("id").Str(); ok && secret {
			if source, _ := m.Value.At("source").Str(); source == "env" {
				if v := env(id); v != "" {
					found(v)
				}
			}
		}
		secrets(m.Value, env, found)
	}
}
