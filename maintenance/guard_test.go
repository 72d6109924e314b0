package maintenance

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"oc/config"
	"oc/maintenance/journal"
	"oc/store"
	"oc/store/lock"
	"oc/store/sqlfile"
)

// seen calls at for every file operation of a run.
type seen struct {
	journal.FS
	at func(op, name string)
}

func (s seen) Move(from, to string) error {
	s.at("move", from)
	return s.FS.Move(from, to)
}

func (s seen) Remove(name string) error {
	s.at("remove", name)
	return s.FS.Remove(name)
}

func deleting(c *config.Config, target store.Target, fs journal.FS) (*Worker, func() (*Done, error)) {
	now := func() time.Time { return time.UnixMilli(1_700_000_000_000) }
	w := &Worker{Config: c, Machine: lock.Local(), Now: now, Command: "delete", FS: fs}
	return w, func() (*Done, error) {
		return w.Apply(context.Background(), target, Alone("agent:ops:a"), func(s *Snapshot) (*Plan, error) { return Delete(s, []string{"agent:ops:a"}, now()) })
	}
}

// While transcripts are moved OpenClaw's lock of each is there in oc's form, and afterwards no more.
func TestTranscriptsAreLockedMeanwhile(t *testing.T) {
	c, target, folder := household(t)
	path := filepath.Join(folder, "sessions", liveID+".jsonl")
	held := 0
	_, apply := deleting(c, target, seen{quick{journal.OS()}, func(op, name string) {
		if op == "move" && name == path {
			if raw, err := os.ReadFile(path + lock.Suffix); err != nil || string(raw) != "{}\n" {
				t.Errorf("when it is moved its lock holds %q: %v", raw, err)
			}
			if _, err := lock.Hold(path, lock.Local(), time.Now()); !errors.Is(err, lock.ErrHeld) {
				t.Errorf("somebody else gets it: %v", err)
			}
			held++
		}
	}})
	if d, err := apply(); err != nil || !d.Changed() {
		t.Fatalf("%+v: %v", d, err)
	}
	if held != 1 {
		t.Errorf("it was moved %d times", held)
	}
	if locks, err := lock.Scan(filepath.Dir(path), lock.Local(), time.Now()); err != nil || len(locks) != 0 {
		t.Errorf("left: %v %v", locks, err)
	}
}

// A killed run leaves its locks; the next one removes them and nobody else's.
func TestLocksOfAKilledRun(t *testing.T) {
	c, target, folder := household(t)
	path := filepath.Join(folder, "sessions", liveID+".jsonl")
	other := filepath.Join(folder, "sessions", "b.jsonl"+lock.Suffix)
	_, apply := deleting(c, target, seen{quick{journal.OS()}, func(op, name string) {
		if op == "move" && name == path {
			// As a kill leaves it: a copy of the lock that nobody gives back.
			if err := os.WriteFile(path+".kept", []byte("{}\n"), 0o600); err != nil {
				t.Error(err)
			}
			panic("killed")
		}
	}})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("it was not killed")
			}
		}()
		_, _ = apply()
	}()
	if err := errors.Join(os.Rename(path+".kept", path+lock.Suffix), os.WriteFile(other, []byte("{}\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	w, _ := deleting(c, target, nil)
	if all, err := w.Recover(context.Background(), target.Index, false); err != nil || len(all) != 1 {
		t.Fatalf("%v %v", all, err)
	}
	if _, err := os.Stat(path + lock.Suffix); !os.IsNotExist(err) {
		t.Errorf("the lock is left: %v", err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("another's lock is gone: %v", err)
	}
}

// A gateway is kept out from before the first look until the end, and one that is there already stops the change.
func TestGatewaysAreKeptOut(t *testing.T) {
	c, target, _ := household(t)
	var story []string
	w, apply := deleting(c, target, seen{quick{journal.OS()}, func(op, name string) {
		if filepath.Base(name) == liveID+".jsonl" {
			story = append(story, op)
		}
	}})
	w.Hold = func() (func() error, error) {
		story = append(story, "hold")
		return func() error { story = append(story, "release"); return nil }, nil
	}
	if _, err := apply(); err != nil {
		t.Fatal(err)
	}
	if len(story) != 3 || story[0] != "hold" || story[1] != "move" || story[2] != "release" {
		t.Errorf("%v", story)
	}
	c, target, folder := household(t)
	owned := errors.New("somebody else owns the state")
	w, apply = deleting(c, target, nil)
	w.Hold = func() (func() error, error) { return nil, owned }
	if _, err := apply(); !errors.Is(err, owned) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(folder, "sessions", liveID+".jsonl")); err != nil {
		t.Error(err)
	}
}

// A change of files, which needs no gateway kept out, keeps one out all the same while it finishes a run that was changing a database.
func TestGatewaysAreKeptOutOfARecovery(t *testing.T) {
	c, target, _ := household(t)
	path := filepath.Join(c.StateDir, "state", "openclaw.sqlite")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err == nil {
		_, err = db.Exec("CREATE TABLE x (y TEXT PRIMARY KEY) STRICT; PRAGMA journal_mode = WAL")
	}
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	w, apply := deleting(c, target, nil)
	j, err := w.stateJournal()
	if err != nil {
		t.Fatal(err)
	}
	cut := func() {
		defer func() { _ = recover() }()
		_, err = j.Apply(t.Context(), journal.Plan{Steps: []journal.Step{{Kind: journal.Rows, Phase: journal.Swap, Path: realStore(path), Rows: &journal.Table{
			Change: func(*sqlfile.Tx) error { panic(journal.Stopped{}) },
		}}}})
	}
	cut()
	if !openRows(j) {
		t.Fatal("no run was cut short")
	}
	held := 0
	w.HoldRows = func() (func() error, error) {
		held++
		return func() error { held += 10; return nil }, nil
	}
	if d, err := apply(); err != nil || len(d.Recovered) != 1 || held != 11 {
		t.Errorf("held %d: %v %+v", held, err, d)
	}
	cut()
	owned := errors.New("somebody else owns the state")
	w.HoldRows = func() (func() error, error) { return nil, owned }
	if _, err := w.Recover(t.Context(), target.Index, false); !errors.Is(err, owned) || !openRows(j) {
		t.Errorf("%v", err)
	}
}
