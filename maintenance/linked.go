package maintenance

import "oc/store/jsonfile"

// Unlinked are the files that no row of any store sharing the directory names:
// transcripts, checkpoints, trajectories and their pointers, skill prompts. It
// is empty while the snapshot is Blind: then nobody knows.
func (s *Snapshot) Unlinked() (out []*File) {
	if s.Blind != "" {
		return nil
	}
	named := make([]bool, len(s.Files))
	for i := range s.Rows {
		r := &s.Rows[i]
		for _, f := range r.names {
			named[f] = true
		}
		if r.mended != nil {
			for _, f := range r.mended.names {
				named[f] = true
			}
		}
	}
	for i := range s.Files {
		f := &s.Files[i]
		if named[i] || f.foreign != "" || f.Link {
			continue
		}
		switch f.Class {
		case jsonfile.Live, jsonfile.Checkpoint, jsonfile.Sidecar:
			if f.direct {
				out = append(out, f)
			}
		case jsonfile.Prompt:
			if f.blob && blobName().MatchString(f.Base) {
				out = append(out, f)
			}
		}
	}
	return out
}
