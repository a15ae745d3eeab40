// SPDX-License-Identifier: Apache-2.0

package redaction

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Kind is a kind of secret, in words for people.
type Kind string

// The kinds of secrets.
const (
	PrivateKey     Kind = "private key"
	WebToken       Kind = "JSON web token" //nolint:gosec // the name of a kind
	EKSToken       Kind = "EKS token"
	BootstrapToken Kind = "bootstrap token"
	Signature      Kind = "signature or session token of a request"
	Credential     Kind = "credential of a request" //nolint:gosec // the name of a kind
	Password       Kind = "password in an address"
	Named          Kind = "value with the name of a secret"
	UserData       Kind = "user data"
	Environment    Kind = "variable of a container"
)

// Count is how many secrets of each kind were taken out.
type Count map[Kind]int

// Add adds another count.
func (c Count) Add(other Count) {
	for kind, n := range other {
		c[kind] += n
	}
}

// mostLine is how long a line may be to be read as JSON, in bytes. JSON in strings of JSON is shorter each time, so that
// reading it ends.
const mostLine = 1 << 20

// mark stands where a secret was.
func mark(kind Kind) string { return "[left out: " + string(kind) + "]" }

// names are what the names of secrets end with.
const names = `(?:passw(?:or)?d|[_-]pass|[_-]pwd|passphrase|secret|token|api[-_]?key|secret[-_]?key|access[-_]?key|private[-_]?key|client[-_]?key(?:[-_]data)?|encryption[-_]?key|credentials?|session[-_]?key|\bauth)`

// rule finds secrets of one kind. The text of its first group, if it has one, stays before the mark.
type rule struct {
	kind Kind
	find func() *regexp.Regexp
}

// lazily compiles an expression when it is first needed: compiled, all of them take 1.5 MB, and most processes redact nothing.
func lazily(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// blocks are the rules about several lines.
var blocks = []rule{
	{PrivateKey, lazily(`(?s)-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY.*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----|\z)`)},
	// The end of a key whose beginning was cut off, on lines of a log that may begin with the log's name or a time.
	{PrivateKey, lazily(`(?m)(?:^(?:[^\n]{0,120}[^\nA-Za-z0-9+/=])?[A-Za-z0-9+/=]{48,120}\r?\n)*(?:^(?:[^\n]{0,120}[^\nA-Za-z0-9+/=])?[A-Za-z0-9+/=]{1,120}\r?\n)?^[^\n]{0,120}-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----`)},
	{PrivateKey, lazily(`(?:[A-Za-z0-9+/=]{1,120}(?:\\[rn]|\s)+)*-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----`)},
}

// sections are the rules about values of YAML on the lines below their names.
var sections = []rule{
	{Named, lazily(`(?im)(^[ \t-]*name:[ \t]*["']?[\w.-]*` + names + `["']?[ \t]*\n[ \t]*value:[ \t]*)\S[^\n]*`)},
	// Lines that are indented below belong to the value, or are left out with it.
	{Named, lazily(`(?im)(^[ \t-]*["']?[\w.-]*` + names + `["']?[ \t]*:[ \t]*[|>][+-]?[0-9]?[ \t]*\n)(?:[ \t]+[^\n]*\n?)+`)},
}

// sectionHints are in each text that a rule of sections finds something in, in small letters.
var sectionHints = []string{"value:", ": |", ": >"}

// rules about one line, in their order: a form before a name, since a form says more.
var rules = []rule{
	{EKSToken, lazily(`k8s-aws-v1\.[A-Za-z0-9_=-]+`)},
	{WebToken, lazily(`eyJ[A-Za-z0-9_-]{6,}\.eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]*`)},
	{Signature, lazily(`(?i)(x-amz-(?:signature|security-token|credential)(?:=|%3D|\\?"?:\s*\[?\\?"?))[^&\s"',;\\]+`)},
	{Signature, lazily(`(?i)(\bsignature=)[0-9a-f]{32,}`)},
	{Credential, lazily(`(?i)(\bauthorization\\?["']?\s*[:=]\s*\[?\\?["']?(?:[a-z0-9-]+ )?)[^\s"'\\,\]]+`)},
	{Credential, lazily(`(?i)(\bbearer )[A-Za-z0-9._~+/=-]{16,}`)},
	{Credential, lazily(`(?i)(\b(?:set-)?cookie\\?["']?\s*[:=]\s*\[?\\?["']?)[^\n"'\]]+`)},
	// Tokens of GitHub, GitLab, Slack, npm and Google, by the forms that their makers publish.
	{Credential, lazily(`\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,}|glpat-[A-Za-z0-9_-]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}|npm_[A-Za-z0-9]{36}|AIza[A-Za-z0-9_-]{35})`)},
	{Credential, lazily(`(\bcurl\b[^\n|;]{0,400}?\s(?:-u|--user)[ =]["']?[^\s:"']{0,200}:)[^\s"']+`)},
	{Credential, lazily(`(\bsshpass\s+-p\s*)\S+`)},
	{Credential, lazily(`(\b[\w.-]{1,64}:)[^\s:@"']{1,400}@(?:tcp|udp|unix)\(`)},
	{Password, lazily(`(://[^/\s:@"']{0,200}:)[^/\s@"']{1,400}@`)},
	// Members of JSON, as they stand and within a string of JSON, where each quote has a backslash.
	{Named, lazily(`(?i)("name"\s*:\s*"[\w.-]*` + names + `"\s*,\s*"value"\s*:\s*")(?:[^"\\\n]|\\.)+`)},
	{Named, lazily(`(?i)(\\"name\\"\s*:\s*\\"[\w.-]*` + names + `\\"\s*,\s*\\"value\\"\s*:\s*\\")[^"\\]+(?:\\\\.[^"\\]*)*`)},
	{Named, lazily(`(?i)("value"\s*:\s*")(?:[^"\\\n]|\\.)+"\s*,\s*"name"\s*:\s*"[\w.-]*` + names + `"`)},
	// Structures as Go prints them.
	{Named, lazily(`(?i)(\bname:[\w.-]*` + names + `,?\s*value:)[^\s,}]+`)},
	{Named, lazily(`(?i)(\bSecret\{[^\n]*?Data:map\[string\][^\n{]*\{)[^\n]*`)},
	{Named, lazily(`(?i)(` + names + `["']?\s*[:=]\s*\[?")(?:[^"\\\n]|\\.)+`)},
	{Named, lazily(`(?i)(` + names + `["']?\s*[:=]\s*\[?')[^'\n]+`)},
	{Named, lazily(`(?i)(` + names + `\\*["']?\s*[:=]\s*\[?\\+["'])[^"\\]+(?:\\\\.[^"\\]*)*`)},
	// Variables of environments, lines of YAML, flags.
	{Named, lazily(`(?i)(` + names + `=)[^\s"'&,;\\]+`)},
	{Named, lazily(`(?i)(` + names + `[ \t]+=[ \t]*)[^\s"'&,;\\]{6,}`)},
	{Named, lazily(`(?i)(` + names + `:[ \t]*)[^\s"'\\,;}\[\]{]{6,}`)},
	{Named, lazily(`(?i)(--[\w-]*` + names + ` )[^\s"'-][^\s"']*`)},
}

// hints are in each line that a rule finds something in, in small letters. Most lines have none of them, and take no time.
var hints = []string{
	"k8s-aws-v1.", "eyj", "x-amz-", "signature=", "bearer ", "://", "passw", "_pass", "-pass", "sshpass", "_pwd", "-pwd",
	"passphrase", "cookie", "curl", "@tcp(", "@udp(", "@unix(", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-",
	"xox", "npm_", "aiza", "secret", "token", "key", "credential", "auth",
}

// A mark is one character of Unicode's private use while rules are applied, so that no rule takes it for text.
const firstMark = '\uE000'

// kinds in the order of their marks.
var kinds = []Kind{PrivateKey, WebToken, EKSToken, BootstrapToken, Signature, Credential, Password, Named, UserData, Environment}

// marked reports whether a text is one mark.
func marked(text string) bool {
	r, size := utf8.DecodeRuneInString(text)
	return size == len(text) && r >= firstMark && int(r-firstMark) < len(kinds)
}

// Text returns a text without its secrets, and how many of each kind it had. Lines that are JSON objects are looked
// into, so that no escape hides a secret; such a line without secrets stays as it is.
func Text(text string) (string, Count) {
	count := Count{}
	if !strings.Contains(text, "{") {
		return plainText(text)
	}
	var done, plain strings.Builder
	flush := func() {
		text, found := plainText(plain.String())
		plain.Reset()
		count.Add(found)
		done.WriteString(text)
	}
	for line := range strings.Lines(text) {
		if clean, ok := jsonLine(line, count); ok {
			flush()
			done.WriteString(clean)
		} else {
			plain.WriteString(line)
		}
	}
	flush()
	return done.String(), count
}

// jsonLine returns a line that is a JSON object without its secrets; false if the line is none, or has none that can be
// seen by its members.
func jsonLine(line string, count Count) (string, bool) {
	trimmed := strings.TrimSpace(line)
	if !strings.HasPrefix(trimmed, "{") || !strings.HasSuffix(trimmed, "}") || len(trimmed) > mostLine {
		return "", false
	}
	tree, err := read([]byte(trimmed))
	if err != nil {
		return "", false
	}
	found := Count{}
	if tree, err = clean(tree, "", found); err == nil && len(found) == 0 {
		return "", false
	}
	out, unwritten := json.Marshal(tree)
	if err != nil || unwritten != nil { // a Secret
		count[Named]++
		return mark(Named) + "\n", true
	}
	count.Add(found)
	return string(out) + line[len(strings.TrimRight(line, "\r\n")):], true
}

// plainText takes secrets out of a text by their form and by the names beside them.
func plainText(text string) (string, Count) {
	count := Count{}
	text = strings.Map(func(r rune) rune {
		if r >= firstMark && int(r-firstMark) < len(kinds) {
			return utf8.RuneError // somebody else's
		}
		return r
	}, text)
	if strings.Contains(text, "PRIVATE KEY") {
		for _, r := range blocks {
			text = replace(r, text, count)
		}
	}
	if small := strings.ToLower(text); slices.ContainsFunc(sectionHints, func(hint string) bool { return strings.Contains(small, hint) }) {
		for _, r := range sections {
			text = replace(r, text, count)
		}
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		small := strings.ToLower(line)
		if slices.ContainsFunc(hints, func(hint string) bool { return strings.Contains(small, hint) }) {
			for _, r := range rules {
				line = replace(r, line, count)
			}
		}
		b.WriteString(withoutKeys(withoutBootstrapTokens(line, count), count))
	}
	text = b.String()
	if len(count) == 0 {
		return text, count
	}
	for i, kind := range kinds {
		text = strings.ReplaceAll(text, string(firstMark+rune(i)), mark(kind))
	}
	return text, count
}

// markOf is the character that stands for a kind.
func markOf(kind Kind) string { return string(firstMark + rune(slices.Index(kinds, kind))) } //nolint:gosec // a place in a list of ten

// replace puts marks in the place of what a rule finds.
func replace(r rule, text string, count Count) string {
	var b strings.Builder
	last := 0
	for _, at := range r.find().FindAllStringSubmatchIndex(text, -1) {
		kept := at[0]
		if len(at) > 2 && at[3] >= 0 {
			kept = at[3]
		}
		if marked(text[kept:at[1]]) {
			continue
		}
		count[r.kind]++
		b.WriteString(text[last:kept])
		b.WriteString(markOf(r.kind))
		if r.kind == Password {
			b.WriteString("@")
		}
		last = at[1]
	}
	b.WriteString(text[last:])
	return b.String()
}

// Lengths of a bootstrap token's id and secret (k8s.io/cluster-bootstrap/token/api).
const (
	idLength     = 6
	secretLength = 16
)

// withoutBootstrapTokens puts marks in the place of the secrets of bootstrap tokens.
func withoutBootstrapTokens(line string, count Count) string {
	var b strings.Builder
	for {
		dot := strings.IndexByte(line, '.')
		if dot < 0 {
			b.WriteString(line)
			return b.String()
		}
		before, after := run(line[:dot], inToken, true), run(line[dot+1:], inToken, false)
		b.WriteString(line[:dot+1])
		line = line[dot+1:]
		if before == idLength && after == secretLength && !inWord(line, secretLength) {
			count[BootstrapToken]++
			b.WriteString(markOf(BootstrapToken))
			line = line[secretLength:]
		}
	}
}

func inToken(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

// inWord reports whether a word goes on at a place of a text.
func inWord(text string, at int) bool {
	return at < len(text) && (inToken(text[at]) || text[at] >= 'A' && text[at] <= 'Z' || text[at] == '_')
}

// run is how many bytes of a kind a text begins with, or ends with.
func run(text string, is func(byte) bool, end bool) int {
	n := 0
	for n < len(text) && (!end && is(text[n]) || end && is(text[len(text)-1-n])) {
		n++
	}
	return n
}

// shortestKey is the shortest base64 that is looked into: an Ed25519 key has 48 bytes in DER, 64 in base64.
const shortestKey = 60

func inBase64(c byte) bool {
	return inToken(c) || c >= 'A' && c <= 'Z' || c == '+' || c == '/' || c == '-' || c == '_'
}

// withoutKeys puts marks in the place of base64 that holds a private key.
func withoutKeys(line string, count Count) string {
	var b strings.Builder
	for line != "" {
		n := run(line, inBase64, false)
		if n >= shortestKey && holdsKey(line[:n]) {
			count[PrivateKey]++
			b.WriteString(markOf(PrivateKey))
		} else {
			b.WriteString(line[:n])
		}
		line = line[n:]
		other := run(line, func(c byte) bool { return !inBase64(c) }, false)
		b.WriteString(line[:other])
		line = line[other:]
	}
	return b.String()
}

// holdsKey reports whether base64 holds a private key, in PEM or DER.
func holdsKey(text string) bool {
	text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
	raw, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil { // the run may have begun before the base64 does, or end behind it
		raw, _ = base64.RawStdEncoding.DecodeString(text[:len(text)/4*4])
	}
	if bytes.Contains(raw, []byte("PRIVATE KEY")) {
		return true
	}
	if _, err := x509.ParsePKCS8PrivateKey(raw); err == nil {
		return true
	}
	if _, err := x509.ParseECPrivateKey(raw); err == nil {
		return true
	}
	_, err = x509.ParsePKCS1PrivateKey(raw)
	return err == nil
}
