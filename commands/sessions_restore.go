package commands

import (
	"context"
	"strings"

	"oc/gateway"
	"oc/maintenance"
	"oc/store"
	"oc/store/jsonfile"
)

func sessionsRestore() *Command {
	return &Command{
		Name:  "restore",
		Args:  "KEY",
		Short: "take up a session again that was archived, deleted or reset",
		Long: "A session that was put aside with oc sessions archive, or by OpenClaw, is taken up again: its archivedAt goes. Of a session that was deleted the archived transcript gets " +
			"its name back, and the row that oc saved comes back with it; where OpenClaw deleted it the row is inferred from the archive's name, with the key agent:<agent>:explicit:<id>, " +
			"and that is told. A conversation that a reset has archived comes back so too, beside the one that goes on. " +
			"Of a database the archives in it and beside it are taken: the events are written again, the row is inferred, with its key where the database knows it, and the archive stays.\n\n" +
			"KEY is the key, id or label of the session, or the name of an archive. If it means several archives, they are named and nothing is changed. What oc did itself is taken back " +
			"whole, trajectories too, with oc undo.",
		Flags: verbFlags,
		Examples: []Example{
			{"oc sessions restore agent:main:telegram:direct:4711", "archived or deleted: take it up again"},
			{"oc sessions restore 7c6f5d8e-1b2a-4c3d-8e9f-0a1b2c3d4e5f --dry-run", "by its id, or by the name of an archive"},
		},
		Exits: verbExits,
		Run:   restoreSession,
	}
}

func restoreSession(ctx context.Context, c *Call) error {
	l, err := c.forChange(ctx)
	if err != nil {
		return err
	}
	word := c.Arg(0)
	if len(store.Find(l.cfg, c.meant(l.cfg), l.opened, word)) > 0 {
		r, err := c.find(ctx, l, word)
		if err != nil {
			return err
		}
		all := addKey(nil, r.Store(), r.Key)
		if err := c.sparesMain(all, "restored"); err != nil {
			return err
		}
		if r.Archived() {
			plan := func(s *maintenance.Snapshot, keys []string) (*maintenance.Plan, error) {
				return maintenance.Unarchive(s, keys, c.Now())
			}
			return c.apply(ctx, l.cfg, verb{past: "restored", plan: plan, rows: inRows(plan), ask: func(k asked) gateway.Request {
				return gateway.Patch{Key: k.key, Agent: k.agent, ExpectedSessionID: k.sure, Fields: map[string]any{"archived": false}}
			}}, all, r.Key)
		}
		return c.bringBack(ctx, l, word, r)
	}
	return c.bringBack(ctx, l, word, nil)
}

// bringBack restores a session from an archive: that of a row's earlier conversation, or one that the word means.
func (c *Call) bringBack(ctx context.Context, l *listing, word string, r *store.Row) error {
	type place struct {
		target store.Target
		lost   maintenance.Lost

		from   *store.Sessions // of a database
		buried maintenance.Buried
	}
	var found []place
	w := c.worker(l.cfg)
	for _, s := range l.opened {
		if r != nil && r.Store() != s {
			continue
		}
		if s.Era == store.SQLiteEra {
			meant := word
			if r != nil {
				meant = r.Key
			}
			buried, err := c.unbury(ctx, s, meant)
			if err != nil {
				return changeError(err, nil)
			}
			for _, b := range buried {
				found = append(found, place{target: s.Target, from: s, buried: b})
			}
			continue
		}
		if s.Era != store.FileEra {
			continue
		}
		snapshot, err := maintenance.Take(ctx, l.cfg, s.Target, maintenance.Alone(), c.machine(), c.Now())
		if err != nil {
			return changeError(err, nil)
		}
		names := snapshot.Archives(word)
		if r != nil {
			names = snapshot.Earlier(r.Key)
		}
		if lost, ok := w.Lost(s.Index, word); ok && r == nil && len(names) == 0 {
			found = append(found, place{target: s.Target, lost: lost})
			continue
		}
		for _, name := range names {
			lost, _ := w.Lost(s.Index, jsonfile.NameOf(name, "").Session)
			lost.Archive = name
			found = append(found, place{target: s.Target, lost: lost})
		}
	}
	switch {
	case len(found) == 0 && r != nil:
		return Failf("%s is not archived, and there is no archive of an earlier conversation of it; oc undo --list shows what oc can take back", r.Key)
	case len(found) == 0:
		_, err := c.find(ctx, l, word)
		return c.unfit(l, err)
	case len(found) > 1:
		var names []string
		for _, p := range found {
			names = append(names, or(or(p.lost.Archive, p.lost.Key), p.buried.Name))
		}
		return Usagef("%q means %d archives: %s; give the name of one", word, len(found), strings.Join(names, ", "))
	}
	p := found[0]
	if p.from != nil {
		return c.exhume(ctx, l.cfg, p.from, p.buried, word)
	}
	all := []changed{{cleaned: cleaned{target: p.target}}}
	x := &all[0]
	return c.apply(ctx, l.cfg, verb{past: "restored", closed: "it has no call that brings back an archive", plan: func(s *maintenance.Snapshot, _ []string) (*maintenance.Plan, error) {
		plan, key, inferred, err := maintenance.Restore(s, p.lost, c.Now())
		x.keys, x.inferred, x.instead = []string{key}, inferred, ""
		if !inferred && key != p.lost.Key {
			x.instead = p.lost.Key
		}
		return plan, err
	}}, all, word)
}
