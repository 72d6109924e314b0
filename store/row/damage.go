package row

import "fmt"

// A Skipped is a row that is in the store but that OpenClaw does not load.
type Skipped struct{ Key, Reason string }

// A Damage is a store that cannot be read as one: it is never taken for empty
// and never written.
type Damage struct {
	Path   string
	Offset int64 // bytes from the start where reading ended
	Size   int64 // of the file; 0 where it is no file or empty
	Reason string
}

func (d *Damage) Error() string {
	if d.Size == 0 {
		return fmt.Sprintf("the session store %s is damaged at byte 0: %s", d.Path, d.Reason)
	}
	return fmt.Sprintf("the session store %s is damaged at byte %d of %d: %s", d.Path, d.Offset, d.Size, d.Reason)
}
