package store

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"oc/config"
	"oc/store/row"
	"oc/store/span"
	"oc/transcript"
	"oc/transcript/visible"
)

// ClaudeCLI is the Reason of a conversation that Claude's command line program
// keeps of a session that OpenClaw lets it answer.
const ClaudeCLI = "claude-cli"

// Bound is the conversation that Claude's command line program keeps of the
// session: <home>/.claude/projects/<any>/<its session id>.jsonl
// (spec/session-tools.md 2.2, releases 2026.7.35 and 2026.9.6). It is nil where
// the row is bound to none, and Missing where its file is not there.
func (r *Row) Bound() *Conversation {
	id := r.boundID()
	if id == "" {
		return nil
	}
	projects := filepath.Join(r.sessions.config.UserHome(), ".claude", "projects")
	c := &Conversation{Key: r.Key, ID: id, Reason: ClaudeCLI, Path: filepath.Join(projects, "*", id+".jsonl"), Missing: true}
	dirs, _ := os.ReadDir(projects) // none: missing
	for _, d := range dirs {
		path := filepath.Join(projects, d.Name(), id+".jsonl")
		if info, err := os.Stat(path); d.IsDir() && err == nil && info.Mode().IsRegular() {
			c.Path, c.Bytes, c.At, c.Missing = path, info.Size(), info.ModTime(), false
			break
		}
	}
	return c
}

// boundID is the id that the row has of the other program's session; "" for
// none, and for one that is no name of a file.
func (r *Row) boundID() string {
	names := [][]byte{span.Path(r.Raw(row.CLISessionBindings), ClaudeCLI, "sessionId"), span.Member(r.Raw(row.CLISessionIDs), ClaudeCLI)}
	if r.sessions.release() != config.Release96 {
		names = append(names, r.Raw(row.ClaudeCLISessionID))
	}
	for _, raw := range names {
		if id, ok := span.Text(raw); ok && span.Trim(id) != "" {
			if id = span.Trim(id); id == "." || id == ".." || strings.ContainsAny(id, "/\\\x00") {
				return ""
			}
			return id
		}
	}
	return ""
}

// seeded is the hash of the prompt that OpenClaw began the other program's
// session with, where it handed the conversation so far to it; "" for none.
func (r *Row) seeded() string {
	receipt := span.Path(r.Raw(row.CLISessionBindings), ClaudeCLI, "reseedReceipt")
	hash, _ := span.Text(span.Member(receipt, "promptHash"))
	local, _ := span.Text(span.Member(receipt, "localSessionId"))
	if string(span.Member(receipt, "version")) != "1" || span.Trim(local) != r.ID() {
		return ""
	}
	return span.Trim(hash)
}

// provider is who answers the session, in small letters: what was chosen for it,
// else who answered last, else who answers by default.
func (r *Row) provider() string {
	text := func(f row.Field) string { s, _ := r.Text(f); return span.Trim(s) }
	for _, f := range [][2]row.Field{{row.ProviderOverride, row.ModelOverride}, {row.ModelProvider, row.Model}} {
		if p := text(f[0]); p != "" && text(f[1]) != "" {
			return span.Lower(p)
		}
	}
	return span.Lower(r.sessions.config.Model(r.modelInput(row.KeyAgent(r.Key))).Provider)
}

// Join puts what another program kept of the session among the messages of a
// page that ends with the newest one, by their times and each once: what both
// have said within five minutes of each other is one message. As in OpenClaw's
// history, that is left out where the session has messages and another provider
// answers it now; of a page that does not end with the newest, or is of one
// branch, too. What is left out is counted in Elsewhere. want is what the page
// was asked for.
func (p *Page) Join(ctx context.Context, r *Row, c *Conversation, want Part) error {
	if c == nil || c.Missing {
		return nil
	}
	in := &importer{page: p, of: c, want: want, names: map[string]string{}, seed: r.seeded(), later: r.sessions.release() == config.Release96}
	if err := in.read(ctx); err != nil {
		return err
	}
	provider := r.provider()
	other := provider != "" && provider != ClaudeCLI && provider != "anthropic" && len(p.Messages) > 0
	if other || want.Whole || want.Around != "" || want.Branch != "" || want.AllBranches {
		p.Elsewhere += in.total
		return nil
	}
	p.Elsewhere += in.total - len(in.all)
	p.Messages = merge(p.Messages, in.all, in.later)
	return nil
}

// Messages of both that are this far apart, in ms, are two.
const sameMoment = 5 * 60_000

// merge puts messages of another program among those of a session. Later
// releases know a message that the session has too by its id from then on.
func merge(local, imported []Message, later bool) []Message {
	type said struct {
		at float64
		ok bool
		id string
	}
	known := map[string][]said{}
	name := func(m *Message) (key string, s said) {
		s.at, s.ok = span.Float(span.Member(m.Raw, "timestamp"))
		s.id, _ = span.Text(span.Path(m.Raw, "__openclaw", "externalId"))
		role, text := transcript.Role(m.Raw), comparable(m.Raw)
		if role == "" || text == "" {
			return "", s
		}
		return role + "\x00" + text, s
	}
	for i := range local {
		if key, s := name(&local[i]); key != "" {
			known[key] = append(known[key], s)
		}
	}
	ids := map[string]bool{}
	for i := range local {
		if id, ok := span.Text(span.Path(local[i].Raw, "__openclaw", "externalId")); ok {
			ids[id] = true
		}
	}
	all := local
	for i := range imported {
		key, s := name(&imported[i])
		if s.id != "" && ids[s.id] {
			continue
		}
		same := key != "" && slices.ContainsFunc(known[key], func(o said) bool {
			if s.id != "" && o.id != "" {
				return s.id == o.id
			}
			return !s.ok || !o.ok || max(s.at-o.at, o.at-s.at) <= sameMoment
		})
		if same {
			ids[s.id] = ids[s.id] || later && s.id != ""
			continue
		}
		if key != "" {
			known[key] = append(known[key], s)
		}
		ids[s.id] = s.id != ""
		all = append(all, imported[i])
	}
	return inTime(all, len(local))
}

// inTime orders messages by their times, those of one moment as they are. The
// first own of them and the others are two lists; one without a time stands with
// the one before it in its list.
func inTime(all []Message, own int) []Message {
	order, at := make([]int, len(all)), make([]float64, len(all))
	for i := range all {
		order[i] = i
		if ms, ok := span.Float(span.Member(all[i].Raw, "timestamp")); ok {
			at[i] = ms
		} else if all[i].Time != 0 {
			at[i] = float64(all[i].Time)
		} else if i > 0 && i != own {
			at[i] = at[i-1]
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(at[a], at[b]) })
	out := make([]Message, len(all))
	for i, from := range order {
		out[i] = all[from]
	}
	return out
}

// comparable is what a message says, for comparing it with a copy.
func comparable(m []byte) string {
	var parts []string
	if s, ok := span.Text(span.Member(m, "text")); ok {
		parts = append(parts, s)
	}
	content := span.Member(m, "content")
	if s, ok := span.Text(content); ok {
		parts = append(parts, s)
	} else if span.KindOf(content) == span.Array {
		_, _ = span.Items(content, 0, func(b []byte) error {
			if s, ok := span.Text(span.Member(b, "text")); ok {
				parts = append(parts, s)
			}
			return nil
		})
	}
	text := strings.Join(parts, "\n")
	if transcript.Role(m) == "user" {
		text = visible.WithoutContext(text)
	}
	return strings.Join(visible.Fields(visible.Undirect(text)), " ")
}
