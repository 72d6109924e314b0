package visible

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"oc/store/span"

	"pgregory.net/rapid"
)

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"":                                   "",
		"plain text, täglich 日本語":            "plain text, täglich 日本語",
		"a\tb\nc\r\nd\re\vf\fg":              "a\tb\nc\nd\ne\nf\ng",
		"a\u2028b\u2029c\u0085d":             "a\nb\nc\nd",
		"a\x1b[0mb\x1b[38;5;1mc\u009b1md":    "abcd",
		"a\x1b]0;title\x07b\x1b]8;;x\x1b\\c": "abc",
		"a\x1b]8;;x\u009cb":                  "ab",
		"a\x1b]never closed":                 "anever closed",
		"a\x1b(Bb\x1b7c\x1bcd\x1b":           "abcd",
		"a\x1b[12\nb\x1b":                    "a\nb",
		"a\x00b\bc\x7fd\u0090e":              "abcde",
		"a\u200bb\u200cc\u200dd\u2060e\ufefff\u00adg\u202eh\u2066i": "abcdefghi",
		"a\ufe0fb\u034fc\u3164d\U000e0041e\u180be":                  "abcdee",
		"👨\u200d👩\u200d👧 ❤\ufe0f می\u200cخواهم":                     "👨\u200d👩\u200d👧 ❤\ufe0f می\u200cخواهم",
		"ä\u202eb\u200bc":               "äbc",
		"bad \xff and \xed\xa0\xbd end": "bad \xff and \xed\xa0\xbd end",
		"number \u0600 sign":            "number \u0600 sign",
	} {
		if got := Plain(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		once := Plain(s)
		if utf8.ValidString(s) && !utf8.ValidString(once) || strings.ContainsAny(once, "\x1b\r\x00\x7f\u200b\u202e") {
			t.Fatalf("%q", once)
		}
	})
}

// Secrets that a filter does not see but a reader does.
func TestShowHiddenTokens(t *testing.T) {
	body := strings.Repeat("Ab3dE5", 7)
	sk, gh := "s"+"k-ant-", "gh"+"p_"
	for _, c := range []struct{ name, in, keeps string }{
		{"zero width", "x " + sk[:3] + "\u200b" + sk[3:] + body + " y", "x  y"},
		{"each way", "x " + strings.Join(strings.Split(sk+body, ""), "\u2060") + " y", "x  y"},
		{"soft hyphen", "x " + gh + body[:9] + "\u00ad" + body[9:36], "x"},
		{"variation", "x " + gh + "\ufe0f\u200d" + body[:36], "x"},
		{"colour", "x " + sk[:1] + "\x1b[0m" + sk[1:] + body, "x"},
		{"title", "x " + sk + "\x1b]0;t\x07" + body, "x"},
		{"backspace", "x " + sk + "\x00" + body, "x"},
		{"line break", "x " + gh + body[:12] + "\n" + body[12:36] + "\nThanks a lot", "Thanks a lot"},
		{"line break in the prefix", "x " + gh[:2] + "\r\n" + gh[2:] + body[:36] + " Thanks", "x  Thanks"},
		{"whole before the break", "x " + sk + body[:20] + "\n  " + body[20:] + "\nThanks", "Thanks"},
		{"many breaks", "x " + sk + strings.Join([]string{body[:10], body[10:20], body[20:30], body[30:]}, "\u2028") + "\nThanks", "Thanks"},
		{"two of them", gh + body[:12] + "\n" + body[12:36] + "\nmiddle words\n" + sk + body[:9] + "\n" + body[9:], "middle words"},
	} {
		got := Show(c.in)
		clean := strings.Join(strings.Fields(got), "")
		for n := 7; n+8 <= len(body); n++ { // the first six and the last four may stay
			if strings.Contains(clean, body[n:n+8]) {
				t.Errorf("%s: %q", c.name, got)
				break
			}
		}
		for _, w := range strings.Fields(c.keeps) {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %q is lost in %q", c.name, w, got)
			}
		}
	}
}

func TestShowPasswords(t *testing.T) {
	for in, want := range map[string]string{
		"password: hunter2hunter2":                 "password: ***",
		"Password: letmein":                        "Password: ***",
		"my passwort: geheim99, danke":             "my passwort: ***, danke",
		"Das Datenbankpasswort ist geheim99.":      "Das Datenbankpasswort ist ***.",
		"passwd = hunter2":                         "passwd = ***",
		"the password is hunter2!":                 "the password is ***",
		"the password is: swordfish":               "the password is: ***",
		"password is “swordfish”":                  "password is “***”",
		"passphrase: correct horse battery\nnext":  "passphrase: ***\nnext",
		"pass phrase is 'correct horse battery'.":  "pass phrase is '***'.",
		"Kennwort lautet abc123":                   "Kennwort lautet ***",
		"**Password:** hunter2x":                   "**Password:** ***",
		"- `password`: `hunter2x`":                 "- `password`: `***`",
		"{\"password\": \"hunter2x\"}":             "{\"password\": \"***\"}",
		"password for the db server: hunter2x":     "password for the db server: ***",
		"password (root): hunter2x":                "password (root): ***",
		"Password:\n  hunter2x\nbye":               "Password:\n  ***\nbye",
		"use password hunter2x now":                "use password *** now",
		"pwd: hunter2x":                            "pwd: ***",
		"passwort：hunter2x":                        "passwort：***",
		"passcode -> 12a34b":                       "passcode -> ***",
		"password: ünïcödé9":                       "password: ***",
		"pass\u200bword: hunter2x":                 "password: ***",
		"password one: a1b2c3d4 password: zzz9zzz": "password one: *** password: ***",

		// Not values.
		"the password is wrong":                         "the password is wrong",
		"I forgot my password again":                    "I forgot my password again",
		"password: required":                            "password: required",
		"password policy: see the handbook":             "password policy: see the handbook",
		"Passwords are stored hashed":                   "Passwords are stored hashed",
		"passwordless: yes2go4it":                       "passwordless: yes2go4it",
		"password-manager: bitwarden2":                  "password-manager: bitwarden2",
		"password: $DB_PASSWORD":                        "password: $DB_PASSWORD",
		"password: {{ vault.secret1 }}":                 "password: {{ vault.secret1 }}",
		"password: ***":                                 "password: ***",
		"password:":                                     "password:",
		"password":                                      "password",
		"password is ":                                  "password is ",
		"reset it at the password page https://a.b/c1d": "reset it at the password page https://a.b/c1d",
		"cpwd: hunter2x":                                "cpwd: hunter2x",
		"Password:\nplease enter it":                    "Password:\nplease enter it",
		"a compass wording of 2 kinds":                  "a compass wording of 2 kinds",
	} {
		if got := Show(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// Show takes time in proportion to the text.
func TestShowOfLargeTexts(t *testing.T) {
	for name, unit := range map[string]string{
		"words": "password ", "colons": "password:\n", "phrases": "pass phrase is ", "quotes": "password: \"", "breaks": "s" + "k-aaaaaaaa\n", "long": "a\n", "escapes": "\x1b]0;",
		"tokens": "gh" + "p_a1b2\nc3d4\n", "wide": "é\u200d\u200b", "csi": "\x1b[1", "stars": "password: **", "prefix": "gh" + "p_\n",
	} {
		s := strings.Repeat(unit, 512<<10/len(unit))
		began := time.Now()
		Show(s)
		if took := time.Since(began); took > 15*time.Second { // in the square of the length it is minutes
			t.Errorf("%s: %v", name, took)
		}
	}
}

func TestShowTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOfN(rapid.RuneFrom([]rune("pasword: isk-ghp_\n\"'*\x1b[0m\u200bé1")), 0, 80, -1).Draw(t, "s")
		got := Show(s)
		if again := Show(got); again != got && !strings.Contains(got, "***") {
			t.Fatalf("%q: %q, then %q", s, got, again)
		}
	})
}

// A message that is shown hides what a reader would put together, and keeps
// every character of what holds no credential.
func TestViewHidesWhatAReaderSees(t *testing.T) {
	token := "ghp" + "_" + strings.Repeat("aB3d", 9)
	for in, want := range map[string]string{
		"use " + token[:12] + "\u200b" + token[12:] + " now": "use ghp_aB…aB3d now",
		"the passphrase is: correct horse":                   "the passphrase is: ***",
		"\x1b[32mgreen\x1b[0m and password: none":            "\x1b[32mgreen\x1b[0m and password: none",
	} {
		o := object{}
		o.setText("role", "toolResult")
		o.setText("content", in)
		out, changed := View{}.Show(o.append(nil))
		got, _ := span.Text(span.Member(out, "content"))
		if got != want || changed.Redacted != (want != in) {
			t.Errorf("%q: %q %+v, want %q", in, got, changed, want)
		}
		if out, _ := (View{Upstream: true}).Show(o.append(nil)); span.Member(out, "content") == nil {
			t.Errorf("%q: OpenClaw's view is %s", in, out)
		} else if said, _ := span.Text(span.Member(out, "content")); said != in {
			t.Errorf("%q: OpenClaw's view is %q", in, said)
		}
	}
}
