package sqlfile

import (
	"context"
	"math/rand/v2"
	"time"
)

// turn is how one writer waits for others. Its pauses are random and stay short: writers that all wait by the schedule of
// SQLite's own busy timeout, which soon waits a tenth of a second each time, leave the file idle or meet again and again.
type turn struct {
	ctx   context.Context
	until time.Time     // no time that anyone is told
	pause time.Duration // the next one, on average
}

const (
	shortestPause = 500 * time.Microsecond
	longestPause  = 8 * time.Millisecond
)

func newTurn(ctx context.Context, wait time.Duration) *turn {
	return &turn{ctx, time.Now().Add(wait), shortestPause}
}

// wait waits a little; false if the time is over.
func (t *turn) wait() bool {
	pause := min(t.pause/2+rand.N(t.pause), time.Until(t.until))
	if pause <= 0 {
		return false
	}
	t.pause = min(2*t.pause, longestPause)
	select {
	case <-t.ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}
