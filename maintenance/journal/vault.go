package journal

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"

	"github.com/klauspost/compress/zstd"
)

// Vault is a directory in which a run keeps bytes: one a file system.
type Vault struct {
	Dir   string `json:"dir"`
	Dev   uint64 `json:"dev,omitempty"`
	Bytes int64  `json:"bytes"` // that it takes on disk
}

// Saved says where the bytes of a file are kept: a frame of a pack, or a second name.
type Saved struct {
	Vault  int   `json:"vault"`
	Offset int64 `json:"offset,omitempty"`
	Length int64 `json:"length,omitempty"`
	Link   int   `json:"link,omitempty"` // n of link-<n>, from 1; 0: in the pack
	Late   bool  `json:"late,omitempty"` // old bytes that were worked out when the run was settled: in the pack of new ones
}

func vaultIn(place, id string) string { return filepath.Join(place, own, "undo", id) }

const (
	oldPack = "old.zst"
	newPack = "new.zst"
	window  = 1 << 20 // memory for unpacking, and what a frame may ask for
)

func linkName(vault string, n int) string { return filepath.Join(vault, "link-"+strconv.Itoa(n)) }

// pack is a file of zstd frames being written.
type pack struct {
	j    *Journal
	dir  string
	f    File
	w    *bufio.Writer
	enc  *zstd.Encoder
	at   int64
	next int64 // where to look at the free space again
}

func (j *Journal) newPack(dir, name string) (*pack, error) {
	path := filepath.Join(dir, name)
	f, err := j.create(path)
	if err != nil {
		return nil, err
	}
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window), zstd.WithEncoderCRC(false))
	if err == nil {
		err = j.give(path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	p := &pack{j: j, dir: dir, f: f, enc: enc}
	p.w = bufio.NewWriterSize(writer(p.write), 1<<16)
	return p, nil
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// write looks at the free space every few megabytes: a disk that oc fills is a disk on which a gateway cannot write.
func (p *pack) write(b []byte) (int, error) {
	if p.at >= p.next {
		if err := p.j.room(p.dir, 0); err != nil {
			return 0, err
		}
		p.next = p.at + 8<<20
	}
	n, err := p.f.Write(b)
	p.at += int64(n)
	return n, err
}

// add appends one frame with what content writes.
func (p *pack) add(content func(io.Writer) error) (offset, length int64, sum digest, err error) {
	if err := p.w.Flush(); err != nil {
		return 0, 0, sum, err
	}
	offset = p.at
	p.enc.Reset(p.w)
	sum = digest{hash: sha256.New()}
	if err = content(io.MultiWriter(p.enc, &sum)); err == nil {
		if err = p.enc.Close(); err == nil {
			err = p.w.Flush()
		}
	}
	return offset, p.at - offset, sum, err
}

func (p *pack) close() error {
	err := p.w.Flush()
	if err == nil {
		err = p.f.Sync()
	}
	return errors.Join(err, p.f.Close())
}

// digest counts and sums bytes.
type digest struct {
	hash hash.Hash
	size int64
}

func (d *digest) Write(b []byte) (int, error) {
	d.size += int64(len(b))
	return d.hash.Write(b)
}

func (d *digest) hex() string { return hex.EncodeToString(d.hash.Sum(nil)) }

// unpack writes a saved frame to w and holds it against its stamp.
func (j *Journal) unpack(path string, saved Saved, want Stamp, w io.Writer) error {
	f, err := j.fs.Open(path)
	if missing(err) {
		return fmt.Errorf("%s: %w: it is gone", path, ErrDamaged)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	dec, err := zstd.NewReader(io.NewSectionReader(f, saved.Offset, saved.Length),
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(window), zstd.WithDecoderLowmem(true))
	if err != nil {
		return err
	}
	defer dec.Close()
	sum := digest{hash: sha256.New()}
	// One byte more than there should be is enough to know: a small frame can unfold to a full disk.
	_, err = io.Copy(io.MultiWriter(w, &sum), io.LimitReader(dec, want.Size+1))
	var outside *fs.PathError
	if errors.As(err, &outside) {
		return err
	}
	if err != nil || sum.size != want.Size || sum.hex() != want.SHA256 {
		return fmt.Errorf("%s: %w at byte %d", path, ErrDamaged, saved.Offset)
	}
	return nil
}

// sum reads a file and returns its size and hash.
func (j *Journal) sum(path string, w io.Writer) (digest, error) {
	sum := digest{hash: sha256.New()}
	f, err := j.fs.Open(path)
	if err != nil {
		return sum, err
	}
	_, err = io.Copy(io.MultiWriter(w, &sum), f)
	return sum, errors.Join(err, f.Close())
}

// holds says whether the file at path holds the bytes of want.
func (j *Journal) holds(path string, now, want Stamp) (bool, error) {
	if now.Type != Plain || now.Size != want.Size {
		return false, nil
	}
	sum, err := j.sum(path, io.Discard)
	return err == nil && sum.hex() == want.SHA256, err
}

// room returns a RoomError when dir's file system has not need bytes and a little more.
func (j *Journal) room(dir string, need int64) error {
	free, total, err := j.fs.Space(dir)
	if err != nil {
		return err
	}
	if need += min(16<<20, total/100); free < need {
		return &RoomError{Dir: dir, Need: need, Free: free, Purge: j.purging}
	}
	return nil
}

// discard removes the saved bytes of a run; what is gone already is gone.
func (j *Journal) discard(r *Run) error {
	for i := range r.Vaults {
		dir := r.Vaults[i].Dir
		if err := j.own(dir); err != nil {
			return err
		}
		names, err := j.fs.ReadDir(dir)
		if missing(err) {
			continue
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := j.fs.Remove(filepath.Join(dir, name)); err != nil && !missing(err) {
				return err
			}
		}
		if err := j.fs.Remove(dir); err != nil && !missing(err) {
			return err
		}
		r.Vaults[i].Bytes = 0
	}
	r.Saved = 0
	return nil
}
