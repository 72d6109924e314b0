package journal

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/google/uuid"
)

// day is how long saved bytes are kept by the clock of the disk, whatever the user's clock says.
const day = 24 * time.Hour

// Expire gives up the saved bytes of one closed run, by name, and returns how many bytes that frees. The manifest stays, for totals and for
// who asks where a session went. ErrUnfinished: call Recover first.
func (j *Journal) Expire(ctx context.Context, id string) (freed int64, err error) {
	if _, err := j.read(id, false); err != nil {
		return 0, err
	}
	release, err := j.Lock(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, release()) }()
	return j.expire(id)
}

// ExpireOlder does the same for every run that is older than keep by the user's clock, and returns their ids. A run from the future stays,
// and so does one whose manifest was written within 24 hours by the clock of the disk, so that a clock that jumps frees nothing that
// was made just now. Runs that cannot be read are left alone.
func (j *Journal) ExpireOlder(ctx context.Context, keep time.Duration) (ids []string, freed int64, err error) {
	var old []string
	runs, _ := j.List()
	now := j.now().UnixMilli()
	for _, r := range runs {
		if !r.Unfinished() && !r.Expired && !r.Purge && r.Created <= now && now-r.Created >= keep.Milliseconds() {
			old = append(old, r.ID)
		}
	}
	if len(old) == 0 {
		return nil, 0, nil
	}
	release, err := j.Lock(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, release()) }()
	disk, err := j.diskTime()
	if err != nil {
		return nil, 0, fmt.Errorf("expire runs of %s: %w", j.base, err)
	}
	for _, id := range old {
		s, e := j.fs.Lstat(j.manifest(id))
		if e != nil || s.MTime > disk-int64(day) {
			err = errors.Join(err, e)
			continue
		}
		n, e := j.expire(id)
		if e != nil {
			err = errors.Join(err, e)
			continue
		}
		ids, freed = append(ids, id), freed+n
	}
	return ids, freed, err
}

// diskTime asks the file system what time it is: the stamp of a new file, nanoseconds since 1970.
func (j *Journal) diskTime() (int64, error) {
	path := filepath.Join(j.runs(), "now."+uuid.NewString()+".tmp")
	f, err := j.fs.Create(path, 0o600)
	if err != nil {
		return 0, err
	}
	s, err := j.fs.Lstat(path)
	return s.MTime, errors.Join(err, f.Close(), j.fs.Remove(path))
}

func (j *Journal) expire(id string) (int64, error) {
	defer j.remember()()
	r, err := j.Load(id)
	if err != nil {
		return 0, err
	}
	if r.Unfinished() {
		return 0, fmt.Errorf("expire run %s: %w", id, ErrUnfinished)
	}
	freed := r.Saved
	// The manifest first: it must not promise what may be gone.
	r.Expired, r.Saved = true, 0
	err = j.write(r)
	if noRoom(err) { // what it gives up makes the room for saying so
		if err := j.discard(r); err != nil {
			return 0, fmt.Errorf("expire run %s: %w", id, err)
		}
		err = j.write(r)
	}
	if err != nil {
		return 0, err
	}
	if err := j.discard(r); err != nil {
		return 0, fmt.Errorf("expire run %s: %w", id, err)
	}
	return freed, nil
}
