// SPDX-License-Identifier: Apache-2.0

package redaction_test

import (
	"strings"
	"testing"

	"muster.dev/muster/internal/explain/redaction"
	"muster.dev/muster/internal/iam/authcheck"
	"muster.dev/muster/internal/iam/identity"
)

// The advice to a principal that no entry names is no secret, though it has the word aws-auth in it.
func TestAdviceStays(t *testing.T) {
	t.Parallel()
	for _, mode := range identity.Modes() {
		table, _ := identity.NewTable(identity.Options{Mode: mode}, nil, nil)
		p, err := (authcheck.Supposed{ARN: "arn:aws:iam::111122223333:role/dev"}).Principal()
		if err != nil {
			t.Fatal(err)
		}
		fix := table.Map(*p).Fix
		if got, count := redaction.Text(fix); got != fix || len(count) > 0 || !strings.Contains(fix, ":role/dev") {
			t.Errorf("in mode %s, %q becomes %q", mode, fix, got)
		}
	}
}

// A secret with a name or a form goes, in whatever language it is written: YAML, JSON, Go, shells, headers, addresses.
func TestSecretsOfAllForms(t *testing.T) {
	t.Parallel()
	const s = "hunter2Hunter2hunter2"
	for name, text := range map[string]string{
		"yaml block":           "password: |\n  " + s + "\nnext: x\n",
		"yaml folded":          "  clientSecret: >-\n      " + s + "\n",
		"yaml env":             "- name: DB_PASSWORD\n  value: " + s + "\n",
		"yaml env quoted":      "- name: \"DB_PASSWORD\"\n  value: \"" + s + "\"\n",
		"cookie":               "Set-Cookie: session=" + s + "; Path=/\n",
		"cookie header":        `headers="map[Cookie:[sid=` + s + `]]"`,
		"basic":                "Authorization: Basic " + s,
		"github":               "remote: ghp_" + strings.Repeat("a1B2", 9),
		"slack":                "xoxb-123456789012-" + s,
		"docker":               `{"auths":{"r.example.org":{"auth":"` + s + `"}}}`,
		"docker in string":     `"{\"auths\":{\"r.example.org\":{\"auth\":\"` + s + `\"}}}"`,
		"json env":             `{"env":[{"name":"DB_PASSWORD","value":"` + s + `"}]}`,
		"json env reversed":    `x {"value":"` + s + `","name":"DB_PASSWORD"}`,
		"go struct":            `EnvVar{Name:DB_PASSWORD,Value:` + s + `,ValueFrom:nil}`,
		"go struct %+v":        `{Name:DB_PASSWORD Value:` + s + ` ValueFrom:<nil>}`,
		"secret data":          `{"kind":"Secret","data":{"x":"` + s + `"}}`,
		"secret in message":    `msg="Secret{Data:map[string][]byte{\"x\":\"` + s + `\"}}"`,
		"kubeconfig":           "users:\n- name: a\n  user:\n    token: " + s + "\n",
		"kubeconfig key":       "    client-key-data: " + s + s + s,
		"url":                  "https://user:" + s + "@example.org/x",
		"dsn":                  "postgres://app:" + s + "@db:5432/x?sslmode=disable",
		"mysql dsn":            "app:" + s + "@tcp(db:3306)/x",
		"flag space":           "--token " + s + " --x",
		"flag equals":          "--bootstrap-token=" + s,
		"env":                  "AWS_SECRET_ACCESS_KEY=" + s,
		"export":               "export DB_PASS=" + s,
		"pwd":                  "MYSQL_PWD=" + s,
		"aws session":          "AWS_SESSION_TOKEN=" + s,
		"query":                "GET /x?access_token=" + s + "&a=b",
		"escaped":              `{"message":"password=\"` + s + `\""}`,
		"double escaped":       `{"message":"{\"inner\":\"{\\\"password\\\":\\\"` + s + `\\\"}\"}"}`,
		"unicode escape":       `{"m":"pass\u0077ord=` + s + `"}`,
		"upper":                "PASSWORD: " + s,
		"spaces":               "password   =    " + s,
		"colon quote":          "password: '" + s + "'",
		"yaml block in a list": "- api_key: |2\n    " + s + "\n- x: y\n",
		"sshpass":              "sshpass -p " + s + " ssh host",
		"curl -u":              "curl -u user:" + s + " https://x",
		"private jwk":          `{"kty":"RSA","d":"` + s + `","n":"x"}`,
		"service account":      `{"private_key":"` + s + `"}`,
		"toml":                 "secret_key = \"" + s + "\"",
		"passwd":               "root_passwd: " + s,
		"long line":            strings.Repeat("x", 100000) + " password=" + s,
	} {
		got, _ := redaction.Text(text)
		if strings.Contains(got, s) || strings.Contains(got, strings.Repeat("a1B2", 9)) {
			t.Errorf("%s: %.200q", name, got[max(0, len(got)-200):])
		}
	}
}

// Text without a secret stays as it is.
func TestWhatIsNoSecret(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"name: web\nvalue: plain\n",
		"message: |\n  two\n  lines\n",
		`{"kty":"EC","crv":"P-256","x":"abc","y":"def"}`,
		"bypass = certainly-not", "PWD=/var/lib/muster", "compass: north-by-northwest",
		"curl -fsS https://example.org/x", "10.0.0.1:443 @ tcp (x)", "a cookie is a cookie",
		`Name:web,Value:plain`, `"value":"v","name":"web"`,
	} {
		if got, count := redaction.Text(text); got != text || len(count) > 0 {
			t.Errorf("%q became %q, %v", text, got, count)
		}
	}
}

// Of a key in a log whose lines begin with the log's name or a time, the lines that are left go, too, if the first ones were cut off.
func TestEndOfAKeyInALog(t *testing.T) {
	t.Parallel()
	line := strings.Repeat("aB3/", 16)
	for name, prefix := range map[string]string{"none": "", "log": "user-data | ", "kubelet": "2026-11-20T12:00:00.123456Z stderr F ", "syslog": "Nov 20 12:00:00 ip-172-31-0-4 cloud-init[812]: "} {
		before := prefix + "the key is below\n"
		got, count := redaction.Text(before + prefix + line + "\n" + prefix + line + "\n" + prefix + line[:8] + "==\n" + prefix + "-----END RSA PRIVATE KEY-----\nafter")
		if strings.Contains(got, line[:8]) || !strings.HasPrefix(got, before) || !strings.HasSuffix(got, "after") || count[redaction.PrivateKey] == 0 {
			t.Errorf("%s: %q, %v", name, got, count)
		}
	}
}
