package visible

import "strings"

// Show is a text as oc shows it to a person: Plain, and with every credential
// masked that Redact knows, and with those that only a reader would know: tokens
// parted by line breaks, passwords in prose. What follows OpenClaw's own views
// byte for byte uses Redact.
func Show(s string) string { return new(Redactor).Show(s) }

// Show is Show with what else the owner knows to be secret.
func (r *Redactor) Show(s string) string { return r.Redact(unhide(s)) }

// show is masked, which Redact made of a text, or if a reader would still see a
// credential in it, what hides that too: a text without one keeps its every
// character.
func (r *Redactor) show(masked string) string {
	plain := Plain(masked)
	shown := redactPasswords(redactBroken(plain))
	if plain != masked {
		shown = r.Redact(shown) // what parted a token is gone
	}
	if shown == plain {
		return masked
	}
	return shown
}

// ShowLine is Show for a text that is made one line: its words with one blank
// between them.
func ShowLine(s string) string { return Redact(strings.Join(Fields(unhide(s)), " ")) }

func unhide(s string) string { return redactPasswords(redactBroken(Plain(s))) }
