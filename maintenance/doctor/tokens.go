package doctor

import (
	"fmt"
	"math"

	"oc/config"
	"oc/store/row"
	"oc/store/span"
)

// Numbers of rows against what transcripts tell (field-reports.md S13;
// spec/transcript.md 2.4).
const (
	TokensAtLimit    Code = "tokens-at-limit"
	TokensDrift      Code = "tokens-drift"
	TokensImpossible Code = "tokens-impossible"
	CostDrift        Code = "cost-drift"
)

var tokenFamily = Family{
	Name: "tokens",
	Checks: []Check{
		{
			Code: TokensAtLimit, Severity: Info, Remedy: None,
			Says:    "a session's stored context is as large as its window, or larger",
			Matters: "It is cut off at the limit, or it is a sum of all calls: how full the context is cannot be told from it.",
		},
		{
			Code: TokensDrift, Severity: Info, Remedy: None,
			Says:    "a session's stored context is not that of its last answer",
			Matters: "Lists show a context that is fuller or emptier than it is; the session's next run writes it anew.",
		},
		{
			Code: TokensImpossible, Severity: Warn, Remedy: ByHand,
			Says:    "a session's counter holds no number that it could",
			Matters: "Limits and lists that go by it are wrong.",
			Command: "the session's next run writes it anew; oc sessions reset KEY clears it",
		},
		{
			Code: CostDrift, Severity: Info, Remedy: None,
			Says:    "a session's stored cost is not what its answers add up to",
			Matters: "Reports that go by the row are wrong; oc sessions stats adds up the answers.",
		},
	},
	store: (*exam).tokens,
}

func (x *exam) tokens(s *site) {
	for _, r := range s.sessions() {
		x.counters(s, r)
		x.context(s, r)
	}
}

// counters looks for counters that cannot be.
func (x *exam) counters(s *site, r session) {
	for _, field := range []row.Field{row.TotalTokens, row.InputTokens, row.OutputTokens, row.CacheRead, row.CacheWrite, row.ContextTokens, row.EstimatedCostUSD} {
		raw := r.Raw(field)
		if k := span.KindOf(raw); raw == nil || k == span.Null {
			continue
		}
		if n, ok := r.Number(field); !ok || n < 0 || math.IsInf(n, 0) {
			f := Finding{Code: TokensImpossible, Subject: s.row(r.Key), Evidence: []string{fmt.Sprintf("%s is %s", field, kindOf(raw))}}
			f.ID = r.id
			x.find(f)
		}
	}
}

// context compares the stored size of the context with the window, and with
// what the last answer says.
func (x *exam) context(s *site, r session) {
	total, ok := r.Number(row.TotalTokens)
	if !ok || total <= 0 {
		return
	}
	fresh, said := r.Flag(row.TotalTokensFresh)
	stale := said && !fresh
	window, ok := r.Number(row.ContextTokens)
	if !ok || window <= 0 {
		model, provider := r.ModelRef()
		window = x.Config.Model(config.ModelInput{Agent: s.Agent, Model: model, ModelProvider: provider}).ContextTokens
	}
	at := s.row(r.Key)
	at.ID = r.id
	if window > 0 && total >= window {
		f := Finding{Code: TokensAtLimit, Subject: at, Evidence: []string{fmt.Sprintf("totalTokens is %.0f, the window %.0f", total, window)}}
		if stale {
			f.Evidence = append(f.Evidence, "the row itself says that the number is old")
		}
		x.find(f)
	}
	seen := s.seen[r.Key]
	if seen == nil || stale {
		return
	}
	if p := seen.prompt; p > 0 && math.Abs(p-total) > 1000 && math.Abs(p-total) > 0.1*math.Max(p, total) {
		x.find(Finding{Code: TokensDrift, Subject: at, Evidence: []string{fmt.Sprintf("the row says %.0f, the last answer had a prompt of %.0f", total, p)}})
	}
	if stored, ok := r.Number(row.EstimatedCostUSD); ok && seen.priced > 0 && !seen.part && len(r.Texts(row.UsageFamilySessionIDs)) < 2 {
		if off := math.Abs(stored - seen.cost); off > 0.01 && off > 0.01*math.Max(stored, seen.cost) {
			x.find(Finding{Code: CostDrift, Subject: at, Evidence: []string{fmt.Sprintf("the row says %.2f US dollars, %d answers add up to %.2f", stored, seen.priced, seen.cost)}})
		}
	}
}

// seen is what the transcript of a session tells of its tokens.
type seen struct {
	prompt float64 // tokens of the last answer's prompt; 0 where none is known since the last compaction
	cost   float64 // of all answers, US dollars
	priced int     // answers that have a price
	part   bool    // not all of them were read
}
