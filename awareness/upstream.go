package awareness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"

	"oc/store/span"
)

// Upstream is one tick of the monitor that OpenClaw runs every minute on the conversations that adopted sessions came
// from (spec/awareness.md 2.3, release 2026.9.6).
type Upstream struct {
	// Session is what the store knows of an adopted session; false if it has no entry or no session id, or if a run of it
	// is active. It is asked before and after the conversation is read.
	Session func(key, agent string) (Adoption, bool)
	// Missed counts, by link, the ticks in a row in which the conversation was missing. It is kept from tick to tick.
	Missed map[string]Missed
}

// Adoption is an adopted session.
type Adoption struct {
	SessionID string
	Parent    string   // the session that made it; may be empty
	Own       []string // the last 10 texts that it sent itself, see [Own]
}

// Missed is how often a conversation was missing.
type Missed struct {
	Ticks   int
	Updated int64 // of the link when it was counted
}

// missingTicks is how many make a conversation lost.
const missingTicks = 3

// Scan is what a tick found for one link.
type Scan struct {
	Link    Link
	Outcome Outcome
	Turns   int64  // of people, that are new
	Missed  int    // ticks in a row without the conversation
	Reason  string // why a link was skipped or blocked, or is quiet
}

// Outcome of a scan.
type Outcome string

// Outcomes.
const (
	Quiet   Outcome = "quiet"   // no person wrote there
	Blocked Outcome = "blocked" // a line is longer than a tick reads: what people wrote there or behind it is not seen, by OpenClaw neither
	Active  Outcome = "active"  // one event tells of the new turns
	Missing Outcome = "missing" // not there; not yet for long enough
	Lost    Outcome = "lost"    // one event tells of it, and the link is removed
	Skipped Outcome = "skipped" // see Reason
)

// ScanUpstream does one tick on the watched links whose conversations are local files of Claude's command line. Each
// link has its own short transaction, and one that fails does not keep the others from being scanned: the error joins
// theirs.
func ScanUpstream(ctx context.Context, path string, o Options, u *Upstream) ([]Scan, error) {
	var found []Link
	err := Read(ctx, path, func(s *Snapshot) error {
		found = nil
		return s.Links(func(l Link) error {
			if l.Watched {
				found = append(found, l)
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	keys, seen := map[string]int{}, map[string]bool{}
	for _, l := range found {
		keys[l.SessionKey]++
		seen[l.id()] = true
	}
	if u.Missed == nil {
		u.Missed = map[string]Missed{}
	}
	for id := range u.Missed {
		if !seen[id] {
			delete(u.Missed, id)
		}
	}
	var scans []Scan
	var errs []error
	for _, l := range found {
		scan := Scan{Link: l, Outcome: Skipped}
		if keys[l.SessionKey] > 1 {
			scan.Reason = "several agents have adopted a session under this key"
		} else if err := u.scan(ctx, path, o, &scan); err != nil {
			scan.Outcome, scan.Reason = Skipped, err.Error()
			errs = append(errs, fmt.Errorf("scan upstream of %s: %w", l.SessionKey, err))
		}
		scans = append(scans, scan)
	}
	return scans, errors.Join(errs...)
}

// id names a link and its source.
func (l Link) id() string { return l.SessionKey + "\n" + l.AgentID + "\n" + l.source() }

// source is OpenClaw's name for where the conversation is.
func (l Link) source() string {
	ref := string(l.Ref)
	if span.Valid(l.Ref) != nil {
		ref = "null"
	}
	sum := sha256.Sum256([]byte(l.Host + "\x00" + l.Thread + "\x00" + ref))
	return hex.EncodeToString(sum[:])[:16]
}

func (u *Upstream) scan(ctx context.Context, path string, o Options, s *Scan) error {
	l := s.Link
	file, local := span.Text(span.Member(l.Ref, "filePath"))
	offset, marked := span.Int(span.Member(l.Marker, "offset"))
	if !marked {
		offset, marked = span.Int(span.Member(l.Marker, "size"))
	}
	switch {
	case l.Kind != "claude-cli" || !local:
		s.Reason = "not a local conversation of Claude's command line"
		return nil
	case !marked || offset < 0:
		s.Reason = "its marker does not say how far the conversation was read"
		return nil
	}
	session, ok := u.session(l)
	if !ok {
		s.Reason = "it has no entry, or is running"
		return nil
	}
	got, err := claudeTail(file, offset, session.Own)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return u.missing(ctx, path, o, s, session)
	case err != nil:
		delete(u.Missed, l.id()) // it is there
		return err
	}
	delete(u.Missed, l.id())
	if got.next == offset {
		switch s.Outcome = Quiet; {
		case got.blocked:
			s.Outcome, s.Reason = Blocked, "its next line is longer than 1 MiB"
		case got.shrunk:
			s.Reason = "it is shorter than it was"
		}
		return nil
	}
	if again, ok := u.session(l); !ok || again.SessionID != session.SessionID || !slices.Equal(again.Own, session.Own) {
		s.Reason = "it changed while it was scanned"
		return nil
	}
	marker := `{"offset":` + strconv.FormatInt(got.next, 10) + `}`
	err = Update(ctx, path, o, func(e *Edit) error {
		s.Outcome, s.Turns = Quiet, got.turns
		if ok, err := e.MarkLink(l, []byte(marker)); !ok || err != nil {
			s.Outcome, s.Turns, s.Reason = Skipped, 0, "its link changed while it was scanned"
			return err
		}
		if got.turns == 0 {
			return nil
		}
		s.Outcome = Active
		in := Entry{
			SessionKey: l.SessionKey, SessionID: session.SessionID, AgentID: l.AgentID, Kind: HumanDirectMessage, ActorType: "human",
			OccurredAt: got.last, Summary: "human message via " + l.Catalog,
			DedupeKey: "upstream:" + l.SessionKey + ":" + l.source() + ":" + strconv.FormatInt(got.next, 10),
		}
		if got.turns > 1 {
			in.Payload.Turns = got.turns
		}
		if session.Parent != "" {
			in.Watchers = []string{session.Parent}
		}
		_, err := e.Append(in)
		return err
	})
	return err
}

func (u *Upstream) session(l Link) (Adoption, bool) {
	a, ok := u.Session(l.SessionKey, l.AgentID)
	own := make([]string, len(a.Own))
	for i, text := range a.Own {
		own[i] = normal(text)
	}
	a.Own = own
	return a, ok && a.SessionID != ""
}

// missing counts a tick without the conversation, and gives it up after the last.
func (u *Upstream) missing(ctx context.Context, path string, o Options, s *Scan, session Adoption) error {
	l := s.Link
	if again, ok := u.session(l); !ok || again.SessionID != session.SessionID {
		s.Reason = "it changed while it was scanned"
		return nil
	}
	m := u.Missed[l.id()]
	if m.Updated != l.Updated {
		m = Missed{Updated: l.Updated}
	}
	m.Ticks++
	s.Outcome, s.Missed = Missing, m.Ticks
	if m.Ticks < missingTicks {
		u.Missed[l.id()] = m
		return nil
	}
	err := Update(ctx, path, o, func(e *Edit) error {
		s.Outcome = Lost
		if ok, err := e.RemoveLink(l); !ok || err != nil {
			s.Outcome, s.Reason = Skipped, "its link changed while it was scanned"
			return err
		}
		_, err := e.Append(Entry{
			SessionKey: l.SessionKey, AgentID: l.AgentID, Kind: UpstreamMissing, ActorType: "system", Summary: "upstream missing via " + l.Catalog,
			Payload:   Payload{Channel: l.Catalog},
			DedupeKey: "upstream-missing:" + l.SessionKey + ":" + l.source() + ":" + strconv.FormatInt(l.Updated, 10),
		})
		return err
	})
	if err == nil {
		delete(u.Missed, l.id())
	}
	return err
}
