package doctor

import (
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"oc/store/jsonfile"
	"oc/store/lock"
	"oc/transcript"
)

// What is wrong in transcripts. Codes of lines, messages, links and calls are
// those of oc/transcript (field-reports.md S10 to S12; spec/transcript.md 1.6
// to 1.9 and 8, release 2026.7.35); these come on top.
const (
	TranscriptUnreadable Code = "transcript-unreadable"
	TranscriptChanged    Code = "transcript-changing"
	TranscriptOtherID    Code = "transcript-other-id"
	TranscriptAhead      Code = "transcript-ahead"
	TranscriptLarge      Code = "transcript-large"
	LongLine             Code = "long-line"
	InlineImages         Code = "inline-images"
	RepeatedMessages     Code = "repeated-messages"
	RepeatedCompaction   Code = "repeated-compaction"
	SharedPrefix         Code = "shared-prefix"
)

// lineCheck is a check of oc/transcript.
func lineCheck(code transcript.Code, s Severity, says, matters, command string) Check {
	c := Check{Code: Code(code), Severity: s, Says: says, Matters: matters, Command: command}
	if command != "" {
		c.Remedy = ByHand
	}
	return c
}

const (
	lineLost  = "OpenClaw passes over the line without a word: what stands in it is not in the conversation any more."
	refused   = "Providers refuse such a conversation; OpenClaw mends it in memory where it can, at every turn anew."
	repairOne = "oc repair transcript FILE mends it"
	toWait    = "oc doctor --fix, once nobody writes the file"

	// What oc does not do, because the file does not tell what is right.
	byHandText   = "which characters they were is not in the file: correct the line while OpenClaw is down, if the text is known from elsewhere"
	byHandRow    = "take the entry out of a backup of the database, if there is one: what stood in it is not in this file"
	byHandHeader = "with the same id as the first: take the line out while OpenClaw is down; with another: put it and the lines behind it into a file of that name. Which of them belong to whom is not in the file"
	byHandTwins  = "compare the two lines; while OpenClaw is down give the one that later lines do not mean another id. Which one they mean is not in the file, so that oc does not choose"
	byHandLeaf   = "nothing, where oc sessions history KEY ends as it should; else name in its targetId the row to go on from, while OpenClaw is down. Where a conversation goes on oc does not choose"
	byHandRoot   = "nothing, where it was to begin anew; else put the id of the entry before into its parentId while OpenClaw is down. A new beginning looks alike, so that oc does not choose"
	byHandResult = "nothing, while the provider takes the conversation: OpenClaw leaves the result out of each request; else oc sessions reset KEY. A call that was never written cannot be made up"
	byHandCall   = "nothing, while the provider takes the conversation; else oc sessions reset KEY. What the call said is not in the file"
	byHandKept   = "nothing, or oc sessions compact KEY for a summary anew: no row hung on the lost one, so that nothing tells what was kept; oc sessions history KEY shows what came before"
)

var transcriptFamily = Family{
	Name: "transcripts",
	Checks: []Check{
		{
			Code: TranscriptUnreadable, Severity: Error, Remedy: ByHand,
			Says:    "a transcript cannot be read",
			Matters: "OpenClaw cannot read it either, or runs as another user.",
			Command: "look at the mode and owner of the file, and at the disk",
		},
		{
			Code: TranscriptChanged, Severity: Info, Remedy: None,
			Says:    "a transcript was written while it was read",
			Matters: "A session is at work there; what is said of its end may be over by now.",
		},
		lineCheck(transcript.NotJSON, Error, "a line of a transcript is not JSON", lineLost, repairOne),
		lineCheck(transcript.NUL, Error, "a line of a transcript holds NUL bytes", lineLost, repairOne),
		lineCheck(transcript.NULTail, Error, "a transcript ends in NUL bytes alone", "A write was cut short. Some releases refuse the file from then on, others append behind the NUL bytes and lose that line too.", toWait),
		lineCheck(transcript.TornTail, Warn, "the last line of a transcript is cut", "A write was cut short: that one entry is lost, those before it are whole.", toWait),
		lineCheck(transcript.NoBreak, Info, "the last line of a transcript has no line break", "It is whole; the next write puts the line break first.", ""),
		lineCheck(transcript.NotObject, Error, "a line of a transcript is JSON but no object", lineLost, repairOne),
		lineCheck(transcript.DamagedRow, Error, "a row of a database cannot be read", "The entry is lost from the conversation.", byHandRow),
		lineCheck(transcript.BOM, Warn, "a transcript begins with a byte order mark", "OpenClaw does not recognise the header behind it and makes a copy of the file at the next start.", repairOne),
		lineCheck(transcript.CRLF, Info, "a transcript has the line ends of Windows", "OpenClaw reads them like others.", ""),
		lineCheck(transcript.BadUTF8, Warn, "a line of a transcript is not UTF-8", "The bytes are shown as a replacement character, and are gone when OpenClaw writes the line anew.", byHandText),
		lineCheck(transcript.NoHeader, Error, "a transcript has no header", "OpenClaw takes the whole file for damaged, copies it and begins with a new header.", repairOne),
		lineCheck(transcript.LateHeader, Warn, "a transcript's header is not its first record", "OpenClaw takes the file for damaged, copies it and writes it anew.", repairOne),
		lineCheck(transcript.SecondHeader, Warn, "a transcript has more than one header", "Two conversations may have been written into one file; only the first header counts.", byHandHeader),
		lineCheck(transcript.BadHeader, Error, "a transcript's header has no id", "OpenClaw takes the whole file for damaged, copies it and begins with a new header.", repairOne),
		lineCheck(transcript.OldVersion, Info, "a transcript is of an old version", "OpenClaw rewrites it when it opens it, in a straight line: branches are lost then.", ""),
		lineCheck(transcript.NewVersion, Warn, "a transcript is of a version that oc does not know", "A newer release wrote it; an older one may misread it.", "do not go back to an older release"),
		lineCheck(transcript.NoMessage, Error, "a message row holds no message", "OpenClaw fails on it when it builds the context: the session cannot go on.", repairOne),
		lineCheck(transcript.BadRole, Warn, "a message has no role", "OpenClaw drops the row before a run, and with it all that came before.", repairOne),
		lineCheck(transcript.NoID, Info, "an entry has no id", "OpenClaw passes over it.", ""),
		lineCheck(transcript.BlankUser, Info, "a user's message is blank", "OpenClaw puts a word in its place before a run.", ""),
		lineCheck(transcript.EmptyFailure, Info, "an answer failed before it said anything", "OpenClaw puts a word in its place before a run.", ""),
		lineCheck(transcript.BadImage, Warn, "the data of an image is none", "Providers refuse it; OpenClaw puts a text in its place before a run.", repairOne),
		lineCheck(transcript.OrphanParent, Error, "an entry's parent is in no row", "Everything before it is cut off: the model no longer sees it.", repairOne),
		lineCheck(transcript.Cycle, Error, "the parents of an entry lead back to it", "The conversation has no beginning; some of OpenClaw's readers refuse it.", repairOne),
		lineCheck(transcript.DuplicateOther, Error, "two entries have the same id and are not the same", "OpenClaw's readers differ in which of them counts.", byHandTwins),
		lineCheck(transcript.DuplicateSame, Warn, "an entry stands in the file twice", "One of OpenClaw's views of the tree never ends on it.", repairOne),
		lineCheck(transcript.InvalidLeaf, Warn, "a row that says where the conversation goes on points nowhere", "OpenClaw ignores it and goes on at the last row.", byHandLeaf),
		lineCheck(transcript.SecondRoot, Warn, "a further entry has no parent", "The conversation begins anew there: the model does not see what came before.", byHandRoot),
		lineCheck(transcript.DeadCompaction, Info, "a compaction was not continued beside one that was", "A try that led nowhere; nothing is lost.", ""),
		lineCheck(transcript.FirstKept, Warn, "a compaction keeps rows from one that is not there on", "The model sees the summary and nothing from before it.", byHandKept),
		lineCheck(transcript.LabelTarget, Info, "a label is of a row that is not there", "It shows nowhere.", ""),
		lineCheck(transcript.OpenCall, Warn, "the last call of a tool has no result", "The run was killed in the middle. "+refused, repairOne),
		lineCheck(transcript.LostResult, Warn, "a call of a tool has no result, and the conversation went on", refused, repairOne),
		lineCheck(transcript.OrphanResult, Warn, "a result answers a call that is not there", refused, byHandResult),
		lineCheck(transcript.EarlyResult, Warn, "a result stands before its call", refused, byHandResult),
		lineCheck(transcript.SecondResult, Info, "a call has more than one result", "Only the first counts: it is cosmetic.", ""),
		lineCheck(transcript.NoCallID, Warn, "a call of a tool, or a result, has no id", refused, byHandCall),
		lineCheck(transcript.NoArguments, Warn, "a call of a tool has no arguments", refused, byHandCall),
		{
			Code: TranscriptOtherID, Severity: Warn, Remedy: ByHand,
			Says:    "a transcript's header has another id than the row that names it",
			Matters: "The session shows another conversation, or its own under a wrong id.",
			Command: "oc sessions trace KEY",
		},
		{
			Code: TranscriptAhead, Severity: Warn, Remedy: ByHand,
			Says:    "a transcript goes on after its row was last written",
			Matters: "The index has lost what was written about the session: cleanup takes it for older than it is.",
			Command: "the session's next message sets it right; until then, oc sessions cleanup --active-key KEY",
		},
		{
			Code: TranscriptLarge, Severity: Warn, Remedy: ByHand,
			Says:    "a transcript is very large",
			Matters: "OpenClaw reads it whole, several times its size in memory: files of 60 MB have brought gateways down.",
			Command: "oc sessions reset KEY archives it and begins anew; /compact shortens what the model sees, not the file",
		},
		{
			Code: LongLine, Severity: Info, Remedy: None,
			Says:    "a transcript has a very long line",
			Matters: "Many tools give up on such a line; oc reads it.",
		},
		{
			Code: InlineImages, Severity: Info, Remedy: None,
			Says:    "a transcript holds images",
			Matters: "Each is sent to the model again and again until a compaction, and makes the file large.",
		},
		{
			Code: RepeatedMessages, Severity: Warn, Remedy: ByHand,
			Says:    "most of what users said in a transcript repeats what was said before",
			Matters: "A fault has written the same messages over and over: the context is full of copies.",
			Command: "oc sessions reset KEY archives it and begins anew",
		},
		{
			Code: RepeatedCompaction, Severity: Warn, Remedy: ByHand,
			Says:    "a session was compacted again and again without a message in between",
			Matters: "The compaction does not help, and each one costs a call of the model.",
			Command: "oc sessions reset KEY, or a model with a larger window",
		},
		{
			Code: SharedPrefix, Severity: Info, Remedy: None,
			Says:    "transcripts begin with the same entries",
			Matters: "Forks copy all that came before: the bytes are there several times.",
		},
	},
	store: (*exam).transcripts,
}

// most is how many findings of one code are listed for one file.
const most = 100

// A job is a transcript to look at and what comes of it.
type job struct {
	s        *site
	path     string
	size     int64
	key      string // of the row that names it
	id       string // session id of that row
	live     string // why somebody may be writing; "" where nobody seems to
	findings []Finding
	counts   map[Code]int
	part     bool // only the ends were read
	window   bool // of a database
	secrets  bool // credentials are looked for
	look     look
}

// A desk is what one goroutine reads transcripts with, one after the other.
type desk struct {
	transcript.Scanner
	room []byte // for their ends
}

// of is room for n bytes, which lasts until the next call.
func (d *desk) of(n int64) []byte {
	if int64(cap(d.room)) < n {
		d.room = make([]byte, n)
	}
	return d.room[:n]
}

// transcripts looks at every transcript of a directory, on all processors.
func (x *exam) transcripts(s *site) {
	if s.database != nil && x.Deep {
		x.windows(s)
	}
	if !s.alone {
		return
	}
	jobs := x.jobs(s)
	var next, done atomic.Int64
	var wait sync.WaitGroup
	var mu sync.Mutex
	told, read := 0, make([]bool, len(jobs))
	for range max(1, min(runtime.GOMAXPROCS(0), len(jobs))) {
		wait.Go(func() {
			var d desk
			for {
				i := int(next.Add(1)) - 1
				if i >= len(jobs) || x.ctx.Err() != nil {
					return
				}
				x.read(&jobs[i], &d)
				if n := done.Add(jobs[i].size); x.Progress != nil {
					x.Progress(n, x.report.Size.Bytes)
				}
				mu.Lock() // they are told in their order, each as soon as it can be
				for read[i] = true; told < len(jobs) && read[told]; told++ {
					x.done(s, &jobs[told])
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	if x.looksFor(SharedPrefix) {
		x.prefixes(s, jobs)
	}
}

// done takes over what has come of a job.
func (x *exam) done(s *site, j *job) {
	x.tell(j)
	if j.part {
		x.report.Partly.Transcripts++
		x.report.Partly.Bytes += j.size
	}
	x.aboutRow(j)
	switch {
	case s.database == nil:
		s.learn(j)
	case s.beside != nil:
		s.beside.learn(j)
	}
}

// learn keeps what a transcript tells of the tokens of the row that names it.
func (s *site) learn(j *job) {
	if j.key == "" {
		return
	}
	if s.seen == nil {
		s.seen = map[string]*seen{}
	}
	s.seen[j.key] = &seen{prompt: j.look.prompt, cost: j.look.cost, priced: j.look.priced, part: j.part}
}

// tell adds the findings of a job, which then has none: of a state where much
// is wrong they are what takes the memory.
func (x *exam) tell(j *job) {
	for _, f := range j.findings {
		x.find(f)
	}
	for code, n := range j.counts {
		if n > most {
			x.more(code, j.path, n-most)
		}
	}
	j.findings, j.counts = nil, nil
}

// more notes on the last finding of a file and code how many are not listed.
func (x *exam) more(code Code, path string, n int) {
	all := x.report.Findings
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Code == code && all[i].File == path {
			all[i].More = n
			return
		}
	}
}

// jobs are the transcripts of a site: those in its directory, and those
// elsewhere below it that rows name.
func (x *exam) jobs(s *site) []job {
	var jobs []job
	add := func(path string, size int64, age int64) {
		j := job{s: s, path: path, size: size, key: s.keyOf(path), secrets: x.wanted[Secret]}
		if j.key != "" {
			if r, ok := s.index.Row(j.key); ok {
				j.id = r.ID
			}
		}
		if x.Owner.Life != "" && x.Owner.Life != "none" && age < recent {
			j.live = "it was written a moment ago"
		} else if age < recent {
			j.live = "it was written in the last five minutes"
		}
		jobs = append(jobs, j)
	}
	for i := range s.files {
		if f := &s.files[i]; f.Class == jsonfile.Live && f.regular() {
			add(f.Path, f.Size, x.Now.UnixMilli()-f.ModTime.UnixMilli())
		}
	}
	if s.index != nil {
		for i := range s.index.Files {
			if f := &s.index.Files[i]; f.Class == jsonfile.Live && !f.Link && filepath.Dir(f.Path) != s.dir {
				add(f.Path, f.Size, x.Now.UnixMilli()-f.ModTime.UnixMilli())
			}
		}
	}
	return jobs
}

const recent = 5 * 60 * 1000 // milliseconds since the last write, in which a session may be at work

// note adds a finding to a job, as long as there are not too many like it.
func (j *job) note(f Finding) {
	if j.counts == nil {
		j.counts = map[Code]int{}
	}
	if j.counts[f.Code]++; j.counts[f.Code] > most {
		return
	}
	f.Agent, f.Store, f.File, f.Key = j.s.Agent, j.s.path, j.path, j.key
	if j.window {
		f.Byte = -1
	}
	j.findings = append(j.findings, f)
}

// read looks at one transcript: whole, or its ends where it is large and not
// everything was asked for.
func (x *exam) read(j *job, d *desk) {
	f, err := openFile(j.path)
	if err != nil {
		j.note(Finding{Code: TranscriptUnreadable, Subject: Subject{Byte: -1}, Evidence: []string{reason(err)}})
		return
	}
	defer f.Close()
	if j.live == "" {
		if r := lock.Look(j.path+lock.Suffix, x.Machine, x.Now); r.State.Holds() {
			j.live = "it is locked by a process that lives"
		}
	}
	before, err := f.Stat()
	if err == nil {
		j.size = before.Size()
		if x.Deep || j.size <= whole {
			err = j.readWhole(f, &d.Scanner)
		} else {
			j.part = true
			err = j.readEnds(f, d)
		}
	}
	if err != nil {
		j.note(Finding{Code: TranscriptUnreadable, Subject: Subject{Byte: -1}, Evidence: []string{reason(err)}})
		return
	}
	if after, err := os.Stat(j.path); err != nil || after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) {
		j.note(Finding{Code: TranscriptChanged, Subject: Subject{Byte: -1}, Evidence: []string{"its size or its time is another one by now"}})
		j.live = "it was written while it was read"
	}
	j.size = before.Size()
	if j.size >= large {
		j.note(Finding{Code: TranscriptLarge, Subject: Subject{Byte: -1}, Evidence: []string{bytesOf(j.size)}})
	}
	j.inFlight()
}

// Limits in bytes: up to which a transcript is read whole in any case, and
// above which one is large.
const (
	whole = 64 << 10
	large = 64 << 20
)

// inFlight softens what only says that somebody is writing just now.
func (j *job) inFlight() {
	if j.live == "" {
		return
	}
	for i := range j.findings {
		f := &j.findings[i]
		switch transcript.Code(f.Code) {
		case transcript.TornTail, transcript.NoBreak, transcript.OpenCall:
			f.Severity, f.Remedy, f.Command = Info, None, ""
			f.Consequence = "The session is at work: this is as it should be."
			f.Evidence = append(f.Evidence, j.live)
		case transcript.NULTail:
			f.Remedy, f.Command = ByHand, "wait until the session is idle, and look again"
			f.Evidence = append(f.Evidence, j.live)
		}
	}
}
