package config

// Session is what the configuration says about the making of session keys, with OpenClaw's defaults.
type Session struct {
	Scope         string         // "per-sender" or "global"
	DMScope       string         // "main", "per-peer", "per-channel-peer" or "per-account-channel-peer"
	IdentityLinks []IdentityLink // in the order of the configuration
	Store         string         // the template of store paths; empty for the default
}

// IdentityLink gives one name to several peers.
type IdentityLink struct {
	Name  string
	Peers []string // as telegram:1001
}

// Session returns the session section.
func (c *Config) Session() Session { return c.session }

func (c *Config) readSession() Session {
	n := c.root.At("session")
	s := Session{Scope: "per-sender", DMScope: "main"}
	if v, ok := n.At("scope").Str(); ok {
		s.Scope = v
	}
	if v, ok := n.At("dmScope").Str(); ok {
		s.DMScope = v
	}
	s.Store, _ = n.At("store").Str()
	if links := n.At("identityLinks"); links != nil {
		for _, m := range links.Members {
			link := IdentityLink{Name: m.Key}
			for _, peer := range m.Value.Items {
				link.Peers = append(link.Peers, peer.Text)
			}
			s.IdentityLinks = append(s.IdentityLinks, link)
		}
	}
	return s
}
