package doctor

import (
	"bytes"

	"oc/transcript"
	redaction "oc/transcript/visible"
)

// What redaction has left, and what it has spoilt (field-reports.md 141, 142).
// The values are never told. Looking for credentials takes far longer than
// everything else, so that it is done only where it is asked for by its code.
const (
	MaskedArgument Code = "masked-argument"
	Secret         Code = "secret"
)

var secretFamily = Family{
	Name: "secrets",
	Checks: []Check{
		{
			Code: MaskedArgument, Severity: Warn, Remedy: ByHand,
			Says:    "in the arguments of a call stands a mask where a value was",
			Matters: "The true value is lost: when the model repeats the call, or writes it into a file, it writes the mask.",
			Command: "tell the session the value's name instead of the value, such as an environment variable",
		},
		{
			Code: Secret, Severity: Info, Remedy: None,
			Says:    "a message holds what looks like a credential; looked for only with --only secret --deep",
			Matters: "Who may read the transcript has it. oc masks it wherever it shows messages; the file holds it as it is.",
		},
	},
}

// audit looks for masks in what was called, and for credentials where they are
// asked for.
func (j *job) audit(r *transcript.Row) {
	content := j.look.content
	masks := string(j.look.role) == `"assistant"` &&
		(bytes.Contains(content, []byte("***")) || bytes.Contains(content, []byte("…")) || bytes.Contains(content, []byte(`\u2026`)))
	if !masks && !j.secrets {
		return
	}
	redaction.AuditMessage(r.Message, func(where string, s redaction.Secret) {
		code := MaskedArgument
		if s.Kind != "mask" {
			if code = Secret; !j.secrets {
				return
			}
		}
		j.note(Finding{Code: code, Subject: Subject{Line: r.Line, Byte: r.Offset, ID: j.id, Entry: string(r.ID)}, Evidence: []string{where[:min(len(where), 120)] + ": " + s.Kind}})
	})
}
