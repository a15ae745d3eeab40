// SPDX-License-Identifier: Apache-2.0

package filterpattern_test

import (
	"strings"
	"testing"

	"muster.dev/muster/internal/aws/filterpattern"
)

const audit = `{"verb":"create","stage":null,"ok":true,"responseStatus":{"code":201},"sourceIPs":["10.0.0.1"],"annotations":{"authorization.k8s.io/decision":"allow"}}`

const access = `127.0.0.1 Prod frank [10/Oct/2000:13:25:15 -0700] "GET /index.html HTTP/1.0" 404 1534`

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, message string
		want             bool
	}{
		{"", "anything", true},
		{"  ", "", true},
		{"ERROR", "[ERROR 401] UNAUTHORIZED", true},
		{"error", "[ERROR 401] UNAUTHORIZED", false},
		{"ERROR UNAUTHORIZED", "[ERROR 401] UNAUTHORIZED", true},
		{"ERROR MISSING", "[ERROR 401] UNAUTHORIZED", false},
		{`"401] UN"`, "[ERROR 401] UNAUTHORIZED", true},
		{`"a \"b\" \\"`, `say a "b" \`, true},
		{`ERROR -UNAUTHORIZED`, "[ERROR 401] UNAUTHORIZED", false},
		{`ERROR -"MISSING"`, "[ERROR 401] UNAUTHORIZED", true},
		{`?WARN ?ERROR`, "[ERROR 401]", true},
		{`?WARN ?INFO`, "[ERROR 401]", false},
		{`?WARN ERROR`, "[ERROR 401]", true},
		{`%4\d\d%`, "[ERROR 401]", true},
		{`%^4\d\d%`, "[ERROR 401]", false},
		{`-%4\d\d%`, "[ERROR 401]", false},
		{`{ $.verb = "create" }`, audit, true},
		{`{$.verb=create}`, audit, true},
		{`{ $.verb = "cr*e" }`, audit, true},
		{`{ $.verb = %^cre% }`, audit, true},
		{`{ $.verb != "create" }`, audit, false},
		{`{ $.none != "create" }`, audit, false},
		{`{ $.responseStatus.code >= 200 && $.responseStatus.code < 300 }`, audit, true},
		{`{ $.responseStatus.code = 2* }`, audit, true},
		{`{ $.responseStatus.code != 201 || $.sourceIPs[0] = "10.0.0.*" }`, audit, true},
		{`{ ($.verb = "get" || $.verb = "create") && $.ok IS TRUE && $.stage is null }`, audit, true},
		{`{ $.sourceIPs[1] NOT EXISTS }`, audit, true},
		{`{ $.verb NOT EXISTS }`, audit, false},
		{`{ $.ok IS FALSE }`, audit, false},
		{`{ $.annotations['authorization.k8s.io/decision'] = "allow" }`, audit, true},
		{`{ $.name = inf }`, `{"name":"inf"}`, true},
		{`{ $.name = nan }`, `{"name":"nan"}`, true},
		{`{ $.name = Infinity }`, `{"name":"inf"}`, false},
		{`{ $.name = 0x1p4 }`, `{"name":16}`, false},
		{`{ $.name != 5 }`, `{"name":"nan"}`, false},
		{`{ $.name = 1e1 }`, `{"name":"10.0"}`, true},
		{`[level = Inf*, ...]`, "Info started", true},
		{`[level = inf]`, "inf", true},
		{`{ $.verb = "*" }`, audit, true},
		{`{ $.verb = "c*ea*e" }`, audit, true},
		{`{ $.verb = "*c**r*" }`, audit, true},
		{`{ $.verb = "crea*ate" }`, audit, false},
		{`{ $.verb = "*e*e*e*" }`, audit, false},
		{`{ $.verb = "e*" }`, audit, false},
		{`{ $.verb = "*creat" }`, audit, false},
		{`{ $.verb = "create" }`, "not JSON", false},
		{`{ $.verb = "create" }`, audit + audit, false},
		{`[ip, user, username, timestamp, request = *.html*, status_code = 4*, bytes]`, access, true},
		{`[ip, user, username, timestamp, request, status_code = 5*, bytes]`, access, false},
		{`[ip, user]`, access, false},
		{`[ip=127.*, ...]`, access, true},
		{`[..., status_code >= 400 && status_code < 500, bytes > 1000]`, access, true},
		{`[..., bytes < 1000]`, access, false},
		{`[w1=ERROR || w1=WARN, ...]`, "WARN late", true},
		{`[w1=ERROR || w1=%^INFO$%, ...]`, "WARN late", false},
		{`[a, ..., b]`, "one", false},
		{`[a != one]`, "one", false},
	} {
		p, err := filterpattern.Parse(c.pattern)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		if got := p.Matches(c.message); got != c.want {
			t.Errorf("%s matches %s: %v", c.pattern, c.message, got)
		}
		if c.want && !strings.Contains(c.message, p.Contains()) {
			t.Errorf("%s matches %s, which lacks %q", c.pattern, c.message, p.Contains())
		}
	}
}

func TestRefusals(t *testing.T) {
	for pattern, want := range map[string]string{
		"a.b":                               `invalid character(s) in term "a.b"`,
		`"open`:                             "has no end",
		`%open`:                             "has no % at its end",
		`%(%`:                               "regular expression",
		`-`:                                 "a term is empty",
		`""`:                                "a term is empty",
		`[ip, user`:                         "ends with ]",
		`[ip,, user]`:                       "the name of a field",
		`[..., a, ...]`:                     "once",
		`[a = 1 b]`:                         "a comma is expected",
		`{ $.a = 1`:                         "ends with }",
		`{ verb = 1 }`:                      "a selector such as",
		`{ $ = 1 }`:                         "a selector such as",
		`{ $. = 1 }`:                        "a name is expected",
		`{ $.a[b] = 1 }`:                    "neither an index nor a name",
		`{ $.a[0 = 1 }`:                     "a bracket has no end",
		`{ $.a ~ 1 }`:                       "an operator is expected",
		`{ $.a = }`:                         "a value is expected",
		`{ $.a > x }`:                       "compares numbers",
		`{ $.a = x;y }`:                     "must be in quotes",
		`{ $.a IS x }`:                      "IS is followed by",
		`{ $.a NOT x }`:                     "NOT is followed by",
		`{ ($.a = 1 }`:                      "a parenthesis has no end",
		`{ $.a = 1 $.b = 2 }`:               "follows the end",
		strings.Repeat("(", 40):             "invalid character",
		strings.Repeat("a", 1025):           "1024 characters",
		"{" + strings.Repeat("(", 40) + "}": "deeper than 32",

		`%a% %b% -%c%`: "2 regular expressions",
		`{ $.a = %a% && $.b = %b% && $.c = %c% }`: "2 regular expressions",
		`[a = %a%, b = %b%, c = %c%]`:             "2 regular expressions",
		`%(a?){1000}%`:                            "too large",
		`%a{0,1000}%`:                             "too large",
		`{ $.a = %((a|b){30}){30}% }`:             "too large",
	} {
		if _, err := filterpattern.Parse(pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %s", pattern, err, want)
		}
	}
}

func TestContains(t *testing.T) {
	for pattern, want := range map[string]string{"": "", "a bcd -efghi": "bcd", "?abc": "", `"a b" %x%`: "a b", `{ $.a = 1 }`: ""} {
		p, err := filterpattern.Parse(pattern)
		if err != nil || p.Contains() != want || p.All() != (pattern == "") {
			t.Errorf("%s contains %q: %v", pattern, p.Contains(), err)
		}
	}
}

// A pattern that is read matches any message without a panic, and only messages that have its text.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"ERROR -x ?y", `"a b"`, `%4\d%`, `{ $.a[0].b['c'] >= 1 && ($.d = "x*" || $.e NOT EXISTS) }`, "[a, b]"} {
		f.Add(seed, audit)
	}
	f.Fuzz(func(t *testing.T, pattern, message string) {
		p, err := filterpattern.Parse(pattern)
		if err != nil {
			return
		}
		if p.Matches(message) && !strings.Contains(message, p.Contains()) {
			t.Errorf("%q matches %q, which lacks %q", pattern, message, p.Contains())
		}
	})
}
