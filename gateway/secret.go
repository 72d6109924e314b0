package gateway

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// Secret is a token or a password. However it is printed, logged or marshalled,
// it shows only that it is one.
type Secret string

const masked = "[secret]"

// Format makes every verb of fmt print the mask.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.mask()) }

// MarshalText makes encoders write the mask.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.mask()), nil }

// LogValue makes loggers write the mask.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.mask()) }

func (s Secret) mask() string {
	if s == "" {
		return ""
	}
	return masked
}

// said prepares what others said (a server, a library) for an error: without
// the secrets, on one line, and short.
func said(text string, secrets ...Secret) string {
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, string(s), masked)
		}
	}
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	const longest = 300
	if runes := []rune(text); len(runes) > longest {
		text = string(runes[:longest]) + "..."
	}
	return text
}
