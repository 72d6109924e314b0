package maintenance

import (
	"io/fs"
	"time"

	"oc/store/jsonfile"
	"oc/store/row"
)

// A Snapshot is what is on disk for one store at one time. It holds the text
// of the store and the names of files, never their contents.
type Snapshot struct {
	Agent string // that rows without one in their key belong to
	Store string // path of the store
	Dir   string // of its transcripts

	// Text is the store as it was read, and Info the file it was read from; a
	// Linked one lies where the link Store leads to. Absent says that there is
	// none, and nothing that it could be made of.
	Text   []byte
	Info   fs.FileInfo
	listed [32]byte // see namesOf
	Linked bool
	Absent bool

	// Schema is that of a database whose sessions these are; 0 where they are
	// in a file.
	Schema int

	Rows    []Row         // those that OpenClaw loads, in its order
	Skipped []row.Skipped // the others; they stay in the file
	Files   []File        // in the directory by name, then what rows name elsewhere

	// Blind says why it is not known which files other stores in the directory
	// name; "" where it is known.
	Blind string
	// Jobs are the ids of the configured cron jobs; nil where they were not
	// asked for or could not be read.
	Jobs map[string]bool
	// Problems are single things that could not be read, one sentence each.
	Problems []string

	// Governed says that the change is one by name and that a gateway which
	// lives makes it. It knows which sessions it works for, so that a transcript
	// that was written a moment ago is no sign of somebody unseen; a lock is
	// respected all the same.
	Governed bool

	fits func(*row.Entry) error // whether a database takes a row; nil where nobody asks

	// Taken is the time that Take was given.
	Taken time.Time

	first     *draft            // of the plan for that time, where a closer look changed nothing of it; Make takes it over
	prompts   map[string]int    // files of skill prompts by their hash
	names     map[string]int    // files and links of the directory by name
	odd       map[string]bool   // directories and the like there
	sidecars  bool              // there are trajectories, or pointers to them
	heldNames map[string]string // why transcripts, there or not, are locked
	byKey     map[string]int
}

// A Row is a session of the store and the files that it names.
type Row struct {
	row.Entry
	ID      string  // the session id after loading; "" for none
	Updated float64 // updatedAt in epoch milliseconds as OpenClaw loads it: 0 where it is impossible
	HasTime bool    // there is an updatedAt
	Odd     bool    // it cannot be a time: text, null, negative

	// File is the transcript's path as OpenClaw resolves it, "" for none: what
	// sessionFile names where that is acceptable, else <dir>/<id>.jsonl.
	File    string
	Content Content // of that file
	Written float64 // its last change in epoch milliseconds; 0 where it is not there
	Held    string  // why its lock must be respected; "" where nobody holds it

	// Mend is the path that sessionFile should name instead; "" for none.
	Mend string

	misfit string // why its row in a database could not be written

	stuck string // why its transcript in a database cannot be changed

	own     []int // transcripts that are this row's and no link
	side    []int // the trajectory and the pointer beside File
	traces  []int // what OpenClaw takes for its artifacts: File and side, in the directory
	names   []int // every file that must stay while the row does
	runtime int   // a trajectory elsewhere that is provably this row's; -1 for none
	mended  *Row  // the row as it would be with Mend
	line    int64 // bytes of the row in the store as OpenClaw would write it; with a budget
	prompt  prompt
}

// Content is what is known of a transcript.
type Content int

// Contents of a transcript. Only small ones are opened, and only when a rule
// asks (spec/maintenance.md 2.5).
const (
	NotLooked Content = iota
	Gone              // there is nothing at the path
	Empty             // no message in it
	Messages          // messages, or too large or damaged to say that there are none
)

// A File is one file as it was when the directory was read.
type File struct {
	jsonfile.Item
	Base    string
	Content Content
	Held    string // why the lock of its transcript must be respected; "" where nobody holds it

	Info    fs.FileInfo // as the directory was read: what an action expects to find
	direct  bool        // directly in the directory and no link: what OpenClaw scans
	blob    bool        // a skill prompt or the rest of writing one
	foreign string      // the other store that names it
}

// written is the last change in epoch milliseconds.
func (f *File) written() float64 { return fine(f.ModTime) }

// Row finds a row by its key as it stands in the store.
func (s *Snapshot) Row(key string) (*Row, bool) {
	i, ok := s.byKey[key]
	if !ok {
		return nil, false
	}
	return &s.Rows[i], true
}

// fine is a time in epoch milliseconds with fractions, added up as Node does:
// boundaries are exact.
func fine(t time.Time) float64 { return float64(t.Unix())*1e3 + float64(t.Nanosecond())/1e6 }

// millis is a time in whole epoch milliseconds.
func millis(t time.Time) float64 { return float64(t.UnixMilli()) }
