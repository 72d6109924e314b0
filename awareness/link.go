package awareness

import "oc/store/sqlfile"

// Link ties an adopted session to the conversation it came from, in another tool's files
// (spec/awareness.md 1.6).
type Link struct {
	SessionKey string
	AgentID    string
	Catalog    string // which tool
	Host       string
	Thread     string
	Kind       string
	Ref        []byte // raw JSON, the catalog's own; nil if there is none
	Marker     []byte // raw JSON, how far the last scan came; nil if there is none
	Scanned    int64  // ms since 1970; 0 is never
	Created    int64
	Updated    int64
	Watched    bool // somebody watches the session: OpenClaw scans only such
}

// Links calls f for the adopted sessions, by catalog, then key, then agent.
func (s *Snapshot) Links(f func(Link) error) error {
	ok, err := s.need(links, cursors)
	if !ok {
		return err
	}
	return s.tx.Each(`SELECT session_key, agent_id, catalog_id, host_id, thread_id, upstream_kind, upstream_ref_json,
		last_marker_json, last_scanned_at, created_at, updated_at,
		EXISTS (SELECT 1 FROM `+cursors+` WHERE target_session_key = session_key)
		FROM `+links+` ORDER BY catalog_id, session_key, agent_id`, func(r *sqlfile.Row) error {
		return f(Link{
			text(r, 0), text(r, 1), text(r, 2), text(r, 3), text(r, 4), text(r, 5), r.Bytes(6), r.Bytes(7),
			number(r, 8), number(r, 9), number(r, 10), number(r, 11) != 0,
		})
	})
}

// MarkLink stores how far a scan of a link came, if nobody changed the link since it was read; false if somebody did.
func (e *Edit) MarkLink(l Link, marker []byte) (bool, error) {
	if ok, err := e.need(links); !ok {
		return false, err
	}
	n, err := e.tx.Exec(`UPDATE `+links+` SET last_marker_json = ?1, last_scanned_at = ?2, updated_at = ?2
		WHERE session_key = ?3 AND agent_id = ?4 AND updated_at = ?5`, string(marker), e.now, l.SessionKey, l.AgentID, l.Updated)
	return n > 0, err
}

// RemoveLink removes a link, if nobody changed it since it was read; false if somebody did.
func (e *Edit) RemoveLink(l Link) (bool, error) {
	if ok, err := e.need(links); !ok {
		return false, err
	}
	n, err := e.tx.Exec(`DELETE FROM `+links+` WHERE session_key = ?1 AND agent_id = ?2 AND updated_at = ?3`, l.SessionKey, l.AgentID, l.Updated)
	return n > 0, err
}
