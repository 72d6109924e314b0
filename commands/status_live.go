package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"oc/commands/term"
	"oc/config"
	"oc/gateway"
	"oc/store/span"
)

// liveFlag has status ask the gateway too.
var liveFlag = Flag{Name: "live", Help: "ask the gateway too: its health, what runs now, and where its answers go"}

// How much of a gateway's sessions is looked through for runs, and how many of those are asked about one by one.
const (
	rowsAPage  = 200
	mostPages  = 10
	mostRoutes = 20
)

// vitals is what the gateway of the state says of itself.
type vitals struct {
	*live
	took   time.Duration
	health json.RawMessage
	tasks  json.RawMessage // counts of background tasks
	runs   []busy
	more   bool // sessions beyond the pages that were looked through
	sight  *sight
	err    error
}

// busy is a session with a run, or the one that was asked about.
type busy struct {
	row   json.RawMessage // as sessions.list has it
	route json.RawMessage // as session_status has it; nil where it was not asked
}

func (r busy) active() bool { return string(span.Member(r.row, "hasActiveRun")) == "true" }

// member is a part of where answers go: what the gateway says for the run before what stands in the row.
func (r busy) member(name string) json.RawMessage {
	if v := span.Member(r.route, name); v != nil {
		return v
	}
	return span.Member(r.row, name)
}

// target is where answers go, in words.
func (r busy) target() string {
	for _, name := range []string{"active", "deliveryContext"} {
		v := r.member(name)
		if channel := cmp.Or(textIn(v, "channel"), textIn(v, "provider")); channel != "" {
			if to := textIn(v, "to"); to != "" {
				return channel + ", " + to
			}
			return channel
		}
	}
	if last := textIn(r.row, "lastChannel"); last != "" {
		return last
	}
	return term.Unknown
}

// vitals asks the gateway: for one session where a key is given, else for all. What cannot be had is in err, so that the rest of an answer
// can be given.
func (c *Call) vitals(ctx context.Context, cfg *config.Config, key string, seen *sight) (v *vitals) {
	v = &vitals{sight: seen}
	began := c.Now()
	if v.live, v.err = c.live(ctx, cfg, nil, gateway.Read); v.err != nil {
		return v
	}
	defer v.live.Close()
	if v.health, v.err = v.do(ctx, gateway.Health{}); v.err != nil {
		return v
	}
	v.took = c.Now().Sub(began)
	status, err := v.do(ctx, gateway.Status{})
	if err == nil {
		v.tasks = span.Member(status, "tasks")
		err = v.gather(ctx, key)
	}
	v.err = err
	return v
}

func (v *vitals) gather(ctx context.Context, key string) error {
	if key != "" {
		got, err := v.do(ctx, gateway.Describe{Key: key})
		if err != nil {
			return err
		}
		if row := span.Member(got, "session"); span.KindOf(row) == span.Object {
			v.runs = []busy{{row: row}}
		}
	} else if err := v.scan(ctx); err != nil {
		return err
	}
	for i := range v.runs[:min(len(v.runs), mostRoutes)] {
		key := textIn(v.runs[i].row, "key")
		got, err := v.tool(ctx, gateway.Tool{Name: "session_status", Key: key, Args: map[string]any{"sessionKey": key}}, 0)
		if err != nil {
			v.call.Tracef("%s: %v", key, err) // the row says what is known
			continue
		}
		v.runs[i].route = got
	}
	return nil
}

// scan finds the sessions that have a run.
func (v *vitals) scan(ctx context.Context) error {
	page := gateway.List{Limit: rowsAPage, IncludeGlobal: true, IncludeUnknown: true}
	for range mostPages {
		got, err := v.do(ctx, page)
		if err != nil {
			return err
		}
		_, _ = span.Items(span.Member(got, "sessions"), 0, func(row []byte) error {
			if r := (busy{row: row}); r.active() && v.sight.runs(r) {
				v.runs = append(v.runs, r)
			}
			return nil
		})
		next, _ := span.Int(span.Member(got, "nextOffset"))
		if v.more = string(span.Member(got, "hasMore")) == "true" && int(next) > page.Offset; !v.more {
			return nil
		}
		page.Offset = int(next)
	}
	return nil
}

func (v *vitals) print(p *span.Printer) {
	p.Key("live").Object()
	if v.err != nil {
		exit, code := classify(v.err)
		p.Key("error").Object()
		p.Key("code").String(code)
		p.Key("message").String(message(v.err))
		p.Key("exit").Int(int64(exit))
		p.End()
	}
	if v.live != nil {
		v.live.print(p)
		p.Key("uptimeMs").Int(v.Hello.Uptime.Milliseconds())
		p.Key("tookMs").Float(float64(v.took.Microseconds()) / 1000)
		if ok := span.Member(v.health, "ok"); v.sight != nil && ok != nil { // it names the newest sessions
			p.Key("health").Object()
			p.Key("ok").Raw(ok)
			p.End()
		} else {
			rawMember(p, "health", v.health)
		}
		rawMember(p, "tasks", v.tasks)
		p.Key("sessions").Array()
		for _, r := range v.runs {
			p.Object()
			for _, name := range []string{"key", "sessionId", "status", "hasActiveRun", "activeRunIds", "startedAt", "modelProvider", "model", "lastChannel"} {
				rawMember(p, name, span.Member(r.row, name))
			}
			for _, name := range []string{"origin", "active", "deliveryContext", "statusText", "stateVersion"} {
				rawMember(p, name, r.member(name))
			}
			p.End()
		}
		p.End()
		p.Key("more").Bool(v.more)
	}
	p.End()
}

// rawMember prints a value as it came, null where there is none.
func rawMember(p *span.Printer, name string, value json.RawMessage) {
	if p.Key(name); value == nil {
		p.Null()
	} else {
		p.Raw(value)
	}
}

// text shows what the gateway says, below what the disk says.
func (v *vitals) text(c *Call) {
	out := c.Out
	if v.live == nil {
		out.Printf("\nThe gateway does not answer; what is on disk is above.\n")
		return
	}
	health, style := "ok", term.Green
	if string(span.Member(v.health, "ok")) != "true" {
		health, style = "not ok", term.Red
	}
	if v.health == nil {
		health, style = term.Unknown, term.Yellow
	}
	var sore []string
	for _, part := range []struct{ name, says string }{{"eventLoop", "its event loop is slow"}, {"modelRuntime", "its model runtime is degraded"}} {
		if string(span.Path(v.health, part.name, "degraded")) == "true" {
			sore, style = append(sore, part.says), term.Yellow
		}
	}
	n := 0
	_, _ = span.Items(span.Path(v.health, "plugins", "errors"), 0, func([]byte) error { n++; return nil })
	if n > 0 {
		sore, style = append(sore, plural(n, "plugin failed", "plugins failed")), term.Yellow
	}
	if len(sore) > 0 {
		health += ": " + strings.Join(sore, ", ")
	}
	out.Printf("\nThe gateway says:\n")
	out.Facts(
		term.Fact{Label: "  Release", Value: v.Hello.Version},
		term.Fact{Label: "  Health", Value: health, Style: style},
		term.Fact{Label: "  Up for", Value: v.Hello.Uptime.Truncate(time.Second).String()},
		term.Fact{Label: "  Tasks", Value: v.taskLine()},
		term.Fact{Label: "  Runs", Value: v.runLine()},
	)
	for _, r := range v.runs {
		var ids []string
		_, _ = span.Items(span.Member(r.row, "activeRunIds"), 0, func(id []byte) error {
			s, _ := span.Text(id)
			ids = append(ids, s)
			return nil
		})
		out.Printf("  %s\n", out.Paint(term.Bold, textIn(r.row, "key")))
		for _, id := range ids {
			out.Printf("    run %s\n", id)
		}
		out.Printf("    model %s/%s, answers go to %s\n", cmp.Or(textIn(r.row, "modelProvider"), term.Unknown), cmp.Or(textIn(r.row, "model"), term.Unknown), r.target())
	}
}

func (v *vitals) taskLine() string {
	active, known := span.Int(span.Member(v.tasks, "active"))
	failures, _ := span.Int(span.Member(v.tasks, "failures"))
	if !known {
		return term.Unknown
	}
	return fmt.Sprintf("%s at work, %s failed", term.Count(active), term.Count(failures))
}

func (v *vitals) runLine() string {
	n := 0
	for _, r := range v.runs {
		if r.active() {
			n++
		}
	}
	switch {
	case v.err != nil:
		return term.Unknown
	case v.more:
		return fmt.Sprintf("at least %d: only the newest %d sessions were looked through", n, rowsAPage*mostPages)
	case n == 0:
		return "none"
	}
	return fmt.Sprint(n)
}
