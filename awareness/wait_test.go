package awareness

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestWait(t *testing.T) {
	path := state(t, "empty.2026.9.6")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	reads := 0
	begun := time.Now()
	err := Wait(ctx, path, time.Millisecond, func(s *Snapshot) (bool, error) {
		if reads++; reads == 2 { // the stamps are old by now: only a change makes it read again
			go func() {
				time.Sleep(600 * time.Millisecond)
				_ = Update(context.Background(), path, Options{Now: t0, Wait: time.Second}, func(e *Edit) error {
					_, err := e.Append(sample("x"))
					return err
				})
			}()
		}
		c, err := s.Changes(child, "main", 0, PageSize)
		return len(c.Events) > 0, err
	})
	if took := time.Since(begun); err != nil || reads < 3 || reads > 5 || took > 5*time.Second || took < 600*time.Millisecond {
		t.Errorf("%d reads in %v: %v", reads, took, err)
	}
}

func TestWaitEnds(t *testing.T) {
	path := state(t, "empty.2026.9.6")
	ctx, cancel := context.WithTimeout(context.Background(), 700*time.Millisecond)
	defer cancel()
	reads := 0
	err := Wait(ctx, path, 0, func(*Snapshot) (bool, error) { reads++; return false, nil })
	if !errors.Is(err, context.DeadlineExceeded) || reads != 2 {
		t.Errorf("%d reads: %v", reads, err)
	}
	mine := errors.New("mine")
	if err := Wait(context.Background(), path, 0, func(*Snapshot) (bool, error) { return false, mine }); !errors.Is(err, mine) {
		t.Error(err)
	}
}

// A database that is not there yet may come.
func TestWaitForDatabase(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	made := false
	err := Wait(ctx, Path(dir), 0, func(s *Snapshot) (bool, error) {
		if !made {
			made = true
			if !s.Schema().None {
				t.Error("something is there")
			}
			go func() { _, _ = Init(context.Background(), dir, nil, t0) }()
		}
		return !s.Schema().None, nil
	})
	if err != nil {
		t.Error(err)
	}
}
