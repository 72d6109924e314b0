package maintenance

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"

	"oc/store/jsonfile"
	"oc/transcript"
)

// A Usage is what a transcript that goes had used, kept in the manifest so that
// later totals can count it. Tokens and cost are sums over its entries, each id
// once.
type Usage struct {
	Answers    int     `json:"answers"`
	Input      float64 `json:"input,omitempty"`
	Output     float64 `json:"output,omitempty"`
	CacheRead  float64 `json:"cacheRead,omitempty"`
	CacheWrite float64 `json:"cacheWrite,omitempty"`
	Cost       float64 `json:"cost,omitempty"`
	Provider   string  `json:"provider,omitempty"`
	Model      string  `json:"model,omitempty"`
	First      int64   `json:"first,omitempty"` // of the answers, epoch milliseconds
	Last       int64   `json:"last,omitempty"`
}

// usageFacts adds up a transcript that is to be removed; nil where the file is
// none, or holds no answer.
func usageFacts(a *Action) (json.RawMessage, error) {
	if a.Class != jsonfile.Live && a.Class != jsonfile.Archive || a.Bytes == 0 {
		return nil, nil
	}
	f, err := os.Open(a.Target)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // the journal will say so
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	u, err := sumUsage(f)
	if err != nil || u.Answers == 0 {
		return nil, nil //nolint:nilerr // what cannot be read cannot be counted; its bytes are saved all the same
	}
	return json.Marshal(map[string]Usage{"usage": u})
}

func sumUsage(r io.Reader) (Usage, error) {
	plain, err := transcript.Decompress(r)
	if err != nil {
		return Usage{}, err
	}
	defer plain.Close()
	var t transcript.Totals
	var u Usage
	var scan transcript.Scanner
	err = scan.Read(plain, func(row *transcript.Row) error {
		if row.Err != nil || row.Blank {
			return nil
		}
		before := t.Answers
		t.Add(&row.Entry)
		if at, ok := row.Time(); ok && t.Answers > before {
			if u.First == 0 {
				u.First = at
			}
			u.Last = max(u.Last, at)
		}
		return nil
	})
	s := t.Usage
	u.Answers, u.Provider, u.Model = t.Answers, t.Provider, t.Model
	u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Cost = s.Input.N, s.Output.N, s.CacheRead.N, s.CacheWrite.N, s.Cost.N
	return u, err
}
