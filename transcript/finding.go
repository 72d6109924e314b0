package transcript

// Code names what is wrong with a transcript or one of its rows.
type Code string

// What a scan finds in lines, in the order of spec/transcript.md 8 and
// field-reports.md S10.
const (
	BOM          Code = "bom"            // a byte order mark at the start
	CRLF         Code = "crlf"           // lines that end in CR LF; told once
	NUL          Code = "nul"            // NUL bytes in a line
	NULTail      Code = "nul-tail"       // the file ends in NUL bytes alone
	BadUTF8      Code = "bad-utf8"       // bytes that are not UTF-8
	TornTail     Code = "torn-tail"      // the last line is cut and has no line break
	NoBreak      Code = "no-final-break" // the last line is whole but has no line break
	NotJSON      Code = "not-json"       // a line that is not JSON
	NotObject    Code = "not-object"     // a line that is JSON but no object
	DamagedRow   Code = "damaged-row"    // a row of a database that cannot be read
	NoHeader     Code = "no-header"      // the first record is no header, and none follows
	LateHeader   Code = "late-header"    // the first record is no header, but one follows
	SecondHeader Code = "second-header"  // a further header
	BadHeader    Code = "bad-header"     // a header without an id
	OldVersion   Code = "old-version"    // a header of a version that OpenClaw rewrites
	NewVersion   Code = "new-version"    // a header of a version that is not known
	NoMessage    Code = "no-message"     // a message row without a message: OpenClaw fails on it
	BadRole      Code = "bad-role"       // a message whose role is no text
	NoID         Code = "no-id"          // an entry without an id, which OpenClaw passes over
)

// What a scan finds in messages (spec/transcript.md 1.9).
const (
	BlankUser    Code = "blank-user"    // a user's message with a blank text, or nothing
	EmptyFailure Code = "empty-failure" // an answer that failed before it said anything
	BadImage     Code = "bad-image"     // an image whose data is no image
)

// What Pairs finds on a branch (field-reports.md S12).
const (
	OpenCall     Code = "open-call"     // a call of the last answer without a result: it may still run
	LostResult   Code = "lost-result"   // an earlier call without a result: providers refuse it
	OrphanResult Code = "orphan-result" // a result without a call: providers refuse it
	EarlyResult  Code = "early-result"  // a result before its call
	SecondResult Code = "second-result" // a further result of one call
	NoCallID     Code = "no-call-id"    // a call or a result without an id
	NoArguments  Code = "no-arguments"  // a call without arguments
)

// What a tree finds in the links between rows (field-reports.md S11).
const (
	DuplicateSame  Code = "duplicate-same"     // a further row with the same id and the same bytes
	DuplicateOther Code = "duplicate-other"    // a further row with the same id and other bytes
	OrphanParent   Code = "orphan-parent"      // the parent is in no row: what lies before is cut off
	Cycle          Code = "cycle"              // the parents lead back to the row
	InvalidLeaf    Code = "invalid-leaf"       // a leaf row that points at an unknown row
	SecondRoot     Code = "second-root"        // a further row without a parent
	DeadCompaction Code = "dead-compaction"    // a compaction that was not continued beside one that was
	FirstKept      Code = "first-kept-unknown" // a compaction that keeps from a row that is not there
	LabelTarget    Code = "label-target"       // a label of a row that is not there
)

// A Finding is one thing that is wrong.
type Finding struct {
	Code  Code
	At    Place  // of the row
	Byte  int64  // offset in the whole of the byte that shows it, At.Offset where none does
	ID    string // of the row, if it has one
	Other Place  // the other row of a duplicate, the compaction that was continued
	Why   string // the reason, where the code does not say all; never text of a message
}
