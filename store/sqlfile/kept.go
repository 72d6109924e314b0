package sqlfile

import (
	"slices"
	"sync"
	"time"
)

// Copies are kept open for the next read of the same files, which most commands do, one after the other. They have no
// names: when the process ends, however it ends, they are gone.
const (
	maxKept  = 8
	keptIdle = time.Minute
)

type keptCopy struct {
	of   files
	tx   *Tx
	idle *time.Timer
}

var (
	keptMu sync.Mutex
	kept   []*keptCopy // the oldest first; none of them is in use
)

// takeCopy hands out a copy of just these files, nil if there is none. One of what they were before is of no use any more.
func takeCopy(of files) (tx *Tx) {
	keptMu.Lock()
	defer keptMu.Unlock()
	kept = slices.DeleteFunc(kept, func(k *keptCopy) bool {
		switch {
		case k.of.path != of.path || tx != nil:
			return false
		case k.of.equal(of):
			tx = k.tx
		default:
			k.tx.close()
		}
		k.idle.Stop()
		return true
	})
	return tx
}

// keepCopy takes a copy back, for a while.
func keepCopy(of files, tx *Tx) {
	keptMu.Lock()
	defer keptMu.Unlock()
	if len(kept) == maxKept {
		kept[0].idle.Stop()
		kept[0].tx.close()
		kept = slices.Delete(kept, 0, 1)
	}
	k := &keptCopy{of: of, tx: tx}
	k.idle = time.AfterFunc(keptIdle, func() { dropCopy(k) })
	kept = append(kept, k)
}

func dropCopy(k *keptCopy) {
	keptMu.Lock()
	defer keptMu.Unlock()
	if at := slices.Index(kept, k); at >= 0 {
		kept = slices.Delete(kept, at, at+1)
		k.tx.close()
	}
}

// dropCopies makes room; false if there was nothing to drop.
func dropCopies() bool {
	keptMu.Lock()
	defer keptMu.Unlock()
	dropped := len(kept) > 0
	for _, k := range kept {
		k.idle.Stop()
		k.tx.close()
	}
	kept = nil
	return dropped
}
