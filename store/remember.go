package store

import (
	"context"
	"strings"

	"oc/transcript/compaction"
	"oc/transcript/provider"
	"oc/transcript/visible"
)

// maxBefore is how much of the notes of a day a provider gets to see, in bytes, from their end.
const maxBefore = 16_000

// Remember has notes written about what the Shortening would summarise: what the conversation should leave behind, for the file that has
// the notes of the day so far (spec/transcript.md 4). "" is nothing worth a note. What fails is told in Notes, and the next provider is
// asked; the error is that of the last one, of ctx, or of the transcript.
func (x *Shortening) Remember(ctx context.Context, how Summarizer, before string) (notes string, err error) {
	err = x.Turns(ctx, how, func(_ int, turns []provider.Turn) error {
		if len(turns) == 0 {
			return nil
		}
		known := strings.TrimSpace(before + "\n\n" + notes)
		if over := len(known) - maxBefore; over > 0 {
			known = strings.ToValidUTF8(known[over:], "")
		}
		c := provider.Chain{Failed: func(_ provider.Provider, err error) { x.Notes = append(x.Notes, err.Error()) }}
		for _, p := range how.Providers[x.failed:] {
			c.Providers = append(c.Providers, afresh{p})
		}
		failed := len(x.Notes)
		said, by, err := c.Summarize(ctx, provider.Request{
			Instructions: compaction.RememberInstructions(how.Settings), Previous: how.Mask(known), Conversation: turns, MaxTokens: max(256, how.Settings.Reserve*8/10),
		})
		if err != nil {
			return err
		}
		x.By = by.(afresh).Provider
		x.failed += len(x.Notes) - failed
		if said = visible.Trim(how.Mask(said)); said == "" || visible.Silent(said) {
			return nil
		}
		notes = strings.TrimSpace(notes + "\n\n" + said)
		return nil
	})
	return notes, err
}

// afresh is a provider that puts nothing of earlier notes into its own: one that quotes would go on with them.
type afresh struct{ provider.Provider }

func (a afresh) Summarize(ctx context.Context, r provider.Request) (string, error) {
	if _, quotes := a.Provider.(provider.Extract); quotes {
		r.Previous = ""
	}
	return a.Provider.Summarize(ctx, r)
}
