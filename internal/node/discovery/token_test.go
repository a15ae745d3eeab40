// SPDX-License-Identifier: Apache-2.0

package discovery_test

import (
	"crypto/x509"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/token"
	"muster.dev/muster/internal/node/discovery"
)

// refused wants an error for a reason, with words in it, that keeps the secret.
func refused(t *testing.T, err error, reason discovery.Reason, says ...string) {
	t.Helper()
	var e *discovery.Error
	if !errors.As(err, &e) || e.Reason != reason {
		t.Fatalf("got %v, want it refused for %s", err, reason)
	}
	for _, want := range says {
		if !strings.Contains(e.Error(), want) {
			t.Errorf("got %q, want %q in it", e, want)
		}
	}
	if strings.Contains(e.Error(), half) || strings.Contains(e.Error(), "\n") {
		t.Errorf("not fit to be told: %q", e)
	}
}

func TestByToken(t *testing.T) {
	ca := newAuthority(t, "blue")
	f := newFake(t, ca)
	f.will(signed(t, kubeconfig(f.URL, ca)))
	r, err := discovery.Discover(t.Context(), by(t, f, newAuthority(t, "other"), ca))
	if err != nil || r.Endpoint != f.URL || string(r.CA) != ca.pem() || r.Skew.Abs() > time.Second {
		t.Fatalf("got %+v, %v", r, err)
	}
	if want := f.host() + " knows the token abcdef, and its authority is the pinned one, " + discovery.Pin(ca.cert); r.How != want {
		t.Errorf("known because %q", r.How)
	}
	want := "GET /api/v1/namespaces/kube-public/configmaps/cluster-info"
	if !slices.Equal(f.requests, []string{want, want}) {
		t.Errorf("asked %v", f.requests)
	}
	for _, h := range f.headers {
		if h.Get("Authorization") != "" || h.Get("Cookie") != "" {
			t.Errorf("a server that nobody knows was shown %v", h)
		}
	}
}

func TestByTokenWithoutPin(t *testing.T) {
	ca := newAuthority(t, "blue")
	f := newFake(t, ca)
	f.will(signed(t, kubeconfig(f.URL, ca)))
	c := by(t, f)
	_, err := discovery.Discover(t.Context(), c)
	refused(t, err, discovery.NoPin, "--ca-cert-hash", "--discovery-token-unsafe-skip-ca-verification")
	if f.count() > 0 {
		t.Error("somebody was asked though nothing could come of it")
	}
	c.UnsafeSkipCAVerification = true
	r, err := discovery.Discover(t.Context(), c)
	if err != nil || string(r.CA) != ca.pem() || !strings.HasSuffix(r.How, "its authority was not checked") {
		t.Errorf("got %+v, %v", r, err)
	}
	// A pin that is given counts, whatever is skipped.
	c.CACertHashes = []string{discovery.Pin(newAuthority(t, "other").cert)}
	_, err = discovery.Discover(t.Context(), c)
	refused(t, err, discovery.WrongCA)
	// Also without a pin the server must be that of the cluster which it shows.
	f.will(signed(t, kubeconfig(f.URL, newAuthority(t, "blue"))))
	c.CACertHashes = nil
	_, err = discovery.Discover(t.Context(), c)
	refused(t, err, discovery.WrongServer, `signed by "CN=blue"`, "somebody else answers")
}

func TestAnEndpointElsewhereIsTheClusters(t *testing.T) {
	ca := newAuthority(t, "blue")
	f := newFake(t, ca)
	f.will(signed(t, kubeconfig("https://api.blue.example:6443", ca)))
	c := by(t, f, ca)
	var said []string
	c.Progress = func(s string) { said = append(said, s) }
	r, err := discovery.Discover(t.Context(), c)
	if err != nil || r.Endpoint != "https://api.blue.example:6443" || len(said) != 1 || !strings.Contains(said[0], "api.blue.example") {
		t.Errorf("got %+v, %v, said %q", r, err, said)
	}
}

// The faults of the proofs. Each case changes one thing of a discovery that works.
func TestRefusals(t *testing.T) {
	ca, other := newAuthority(t, "blue"), newAuthority(t, "evil")
	good := func(t *testing.T, f *fake) answer {
		t.Helper()
		return signed(t, kubeconfig(f.URL, ca))
	}
	raw := func(text string) func(*testing.T, *fake) []answer {
		return func(t *testing.T, f *fake) []answer {
			t.Helper()
			return []answer{signed(t, strings.ReplaceAll(strings.ReplaceAll(text, "SERVER", f.URL), "CA", base64.StdEncoding.EncodeToString([]byte(ca.pem()))))}
		}
	}
	with := func(a answer) func(*testing.T, *fake) []answer {
		return func(*testing.T, *fake) []answer { return []answer{a} }
	}
	cluster := func(fields string) string {
		return "apiVersion: v1\nkind: Config\nclusters:\n- name: ''\n  cluster: {certificate-authority-data: CA, server: SERVER" + fields + "}\n"
	}
	for name, tc := range map[string]struct {
		answers func(*testing.T, *fake) []answer
		change  func(*discovery.Config)
		reason  discovery.Reason
		says    []string
	}{
		"another pin": {nil, func(c *discovery.Config) { c.CACertHashes = []string{"sha256:" + strings.Repeat("0", 64)} }, discovery.WrongCA, []string{discovery.Pin(ca.cert), "CN=blue", "pinned is sha256:0000"}},
		"no signature": {func(t *testing.T, f *fake) []answer {
			t.Helper()
			a := good(t, f)
			a.signatures = nil
			return []answer{a}
		}, nil, discovery.NoSignature, []string{"token abcdef", "has expired, was deleted", "muster token create"}},
		"of another token":    {nil, func(c *discovery.Config) { c.Token = parse(t, "zzzzzz."+half) }, discovery.NoSignature, []string{"token zzzzzz"}},
		"another secret half": {nil, func(c *discovery.Config) { c.Token = parse(t, "abcdef.0000000000000000") }, discovery.BadSignature, []string{"behind the dot"}},
		"changed on the way": {func(t *testing.T, f *fake) []answer {
			t.Helper()
			a := good(t, f)
			a.kubeconfig = kubeconfig(f.URL, other)
			return []answer{a}
		}, nil, discovery.BadSignature, []string{"changed the answer"}},
		"a cut signature": {func(t *testing.T, f *fake) []answer {
			t.Helper()
			a := good(t, f)
			a.signatures[id] = a.signatures[id][:20]
			return []answer{a}
		}, nil, discovery.BadSignature, nil},
		"second answer differs": {func(t *testing.T, f *fake) []answer {
			t.Helper()
			return []answer{signed(t, kubeconfig("https://evil.example", ca)), good(t, f)}
		}, nil, discovery.Changed, []string{"another cluster-info", "changes answers"}},
		// An attacker who knows the token puts another authority beside the pinned one: upstream lets that pass.
		"a second authority": {func(t *testing.T, f *fake) []answer {
			t.Helper()
			evil := other.server(t)
			a := signed(t, kubeconfig(f.URL, ca, other))
			a.cert = &evil
			return []answer{a}
		}, nil, discovery.WrongServer, []string{`signed by "CN=evil"`, "no hash pins"}},
		"the server of another": {func(t *testing.T, f *fake) []answer {
			t.Helper()
			evil := other.server(t)
			a := good(t, f)
			a.cert = &evil
			return []answer{a}
		}, nil, discovery.WrongServer, []string{`signed by "CN=evil"`, "somebody else answers"}},
		"not for that address": {func(t *testing.T, f *fake) []answer {
			t.Helper()
			elsewhere := ca.server(t, func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"api.blue.example"} })
			a := good(t, f)
			a.cert = &elsewhere
			return []answer{a}
		}, nil, discovery.WrongServer, []string{"not for that address"}},
		"expired": {func(t *testing.T, f *fake) []answer {
			t.Helper()
			expired := ca.server(t, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
			a := good(t, f)
			a.cert = &expired
			return []answer{a}
		}, nil, discovery.WrongServer, []string{"as it is there", "must renew it"}},
		"a clock ahead": {nil, func(c *discovery.Config) {
			c.Now = func() time.Time { return time.Now().Add(3*time.Hour + 30*time.Second) }
		}, discovery.ClockSkew, []string{"this machine's clock is 3h0m", " ahead of the server's"}},
		"a clock behind": {nil, func(c *discovery.Config) {
			c.Now = func() time.Time { return time.Now().Add(-720*time.Hour - 30*time.Second) }
		}, discovery.ClockSkew, []string{"clock is 720h0m", " behind the server's"}},

		"redirected":    {with(answer{status: 302, header: http.Header{"Location": {"https://evil.example/"}}}), nil, discovery.Refused, []string{"redirect (302)", "not followed"}},
		"unauthorized":  {with(answer{status: 401}), nil, discovery.Refused, []string{"(401)", "--discovery-file"}},
		"forbidden":     {with(answer{status: 403}), nil, discovery.Refused, []string{"(403)", "--discovery-file"}},
		"no such thing": {with(answer{status: 404}), nil, discovery.Refused, []string{"(404)"}},
		"a teapot":      {with(answer{status: 418}), nil, discovery.Refused, []string{"answers 418"}},
		"overloaded":    {with(answer{status: 503}), func(c *discovery.Config) { c.Timeout = time.Millisecond }, discovery.Unreachable, []string{"gave up after 1ms"}},
		"a web page":    {with(answer{body: "<html>"}), nil, discovery.Malformed, []string{"not JSON of an API server"}},
		"another kind":  {with(answer{body: `{"kind":"Status","metadata":{"name":"x"}}`}), nil, discovery.Malformed, []string{`"Status"`}},
		"no kubeconfig": {with(answer{body: `{"kind":"ConfigMap","metadata":{"name":"cluster-info","namespace":"kube-public"}}`}), nil, discovery.Malformed, []string{"no key kubeconfig"}},
		"endless":       {with(answer{body: strings.Repeat(" ", 5<<20)}), nil, discovery.Malformed, []string{"more than 4 MiB"}},

		"no YAML":            {raw("\t"), nil, discovery.Malformed, nil},
		"two documents":      {raw(cluster("") + "---\n" + cluster("")), nil, discovery.Malformed, []string{"one YAML document"}},
		"an unknown field":   {raw(cluster(", trust-me: true")), nil, discovery.Malformed, []string{"trust-me"}},
		"a field twice":      {raw(cluster(", server: SERVER")), nil, discovery.Malformed, []string{"server"}},
		"another version":    {raw(strings.Replace(cluster(""), "v1", "v2", 1)), nil, discovery.Malformed, []string{`"v2"`}},
		"no cluster":         {raw("apiVersion: v1\nkind: Config\nclusters: []\n"), nil, discovery.Malformed, []string{"0 clusters"}},
		"two clusters":       {raw(cluster("") + "- name: a\n  cluster: {certificate-authority-data: CA, server: SERVER}\n"), nil, discovery.Malformed, []string{"2 clusters"}},
		"no authority":       {raw(strings.Replace(cluster(""), "certificate-authority-data: CA, ", "", 1)), nil, discovery.Malformed, []string{"no authority"}},
		"no PEM":             {raw(strings.Replace(cluster(""), "CA", "Q0E=", 1)), nil, discovery.Malformed, []string{"no authority in PEM"}},
		"a key in it":        {raw(strings.Replace(cluster(""), "CA", base64.StdEncoding.EncodeToString([]byte("-----BEGIN PRIVATE KEY-----\nQQ==\n-----END PRIVATE KEY-----\n")), 1)), nil, discovery.Malformed, []string{"PRIVATE KEY"}},
		"a file":             {raw(cluster(", certificate-authority: /etc/shadow")), nil, discovery.Malformed, []string{"names a file"}},
		"without TLS":        {raw(cluster(", insecure-skip-tls-verify: true")), nil, discovery.Malformed, []string{"insecure-skip-tls-verify"}},
		"by a proxy":         {raw(cluster(", proxy-url: 'http://evil.example'")), nil, discovery.Malformed, []string{"proxy-url"}},
		"under another name": {raw(cluster(", tls-server-name: evil.example")), nil, discovery.Malformed, []string{"tls-server-name"}},
		"over http":          {raw(strings.Replace(cluster(""), "SERVER", "http://127.0.0.1:80", 1)), nil, discovery.Malformed, []string{"not https"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, ca)
			if tc.answers == nil {
				f.will(good(t, f))
			} else {
				f.will(tc.answers(t, f)...)
			}
			c := by(t, f, ca)
			if tc.change != nil {
				tc.change(&c)
			}
			r, err := discovery.Discover(t.Context(), c)
			refused(t, err, tc.reason, tc.says...)
			if r.CA != nil || r.Endpoint != "" {
				t.Errorf("refused, and yet %+v", r)
			}
		})
	}
}

// While an authority is replaced, cluster-info names two: a hash of either is enough if it signs the server, and
// trusted is what is pinned. A client that may write cluster-info could put its own authority there, and the kubelet
// would take it for its clients'.
func TestSeveralAuthorities(t *testing.T) {
	before, after := newAuthority(t, "blue 1"), newAuthority(t, "blue 2")
	f := newFake(t, after)
	f.will(signed(t, kubeconfig(f.URL, before, after)))
	for want, pins := range map[string][]authority{after.pem(): {after}, before.pem() + after.pem(): {after, before}} {
		r, err := discovery.Discover(t.Context(), by(t, f, pins...))
		if err != nil || string(r.CA) != want {
			t.Errorf("%d pins: %+v, %v", len(pins), r, err)
		}
	}
	unpinned := by(t, f)
	unpinned.UnsafeSkipCAVerification = true
	if r, err := discovery.Discover(t.Context(), unpinned); err != nil || string(r.CA) != before.pem()+after.pem() {
		t.Errorf("without a pin: %+v, %v", r, err)
	}
	_, err := discovery.Discover(t.Context(), by(t, f, before))
	refused(t, err, discovery.WrongServer, "may be being replaced")
	pins, err := discovery.Pins([]byte(before.pem() + after.pem() + before.pem()))
	if err != nil || !slices.Equal(pins, []string{discovery.Pin(before.cert), discovery.Pin(after.cert)}) {
		t.Errorf("pins %v, %v", pins, err)
	}
}

func TestBadConfigs(t *testing.T) {
	pin := "sha256:" + strings.Repeat("ab", 32)
	for name, tc := range map[string]struct {
		change func(*discovery.Config)
		reason discovery.Reason
		says   string
	}{
		"http":           {func(c *discovery.Config) { c.Endpoint = "http://10.0.0.1:6443" }, discovery.BadEndpoint, "not https"},
		"no port":        {func(c *discovery.Config) { c.Endpoint = "10.0.0.1" }, discovery.BadEndpoint, "port is missing"},
		"no endpoint":    {func(c *discovery.Config) { c.Endpoint = "" }, discovery.BadEndpoint, "HOST:PORT"},
		"port 0":         {func(c *discovery.Config) { c.Endpoint = "a:0" }, discovery.BadEndpoint, "port"},
		"a large port":   {func(c *discovery.Config) { c.Endpoint = "a:65536" }, discovery.BadEndpoint, "port"},
		"a path":         {func(c *discovery.Config) { c.Endpoint = "https://a:1/x" }, discovery.BadEndpoint, "behind the port"},
		"a query":        {func(c *discovery.Config) { c.Endpoint = "https://a:1?x=y" }, discovery.BadEndpoint, "behind the port"},
		"a user":         {func(c *discovery.Config) { c.Endpoint = "https://u@a:1" }, discovery.BadEndpoint, "user"},
		"a blank":        {func(c *discovery.Config) { c.Endpoint = "a b:1" }, discovery.BadEndpoint, "address"},
		"anybody":        {func(c *discovery.Config) { c.Endpoint = "0.0.0.0:1" }, discovery.BadEndpoint, "nobody has"},
		"a bare IPv6":    {func(c *discovery.Config) { c.Endpoint = "fd00::1:6443" }, discovery.BadEndpoint, "HOST:PORT"},
		"no token":       {func(c *discovery.Config) { c.Token = token.Token{} }, discovery.BadConfig, "no token"},
		"a file, too":    {func(c *discovery.Config) { c.File = "x" }, discovery.BadConfig, "leave one out"},
		"a bare hash":    {func(c *discovery.Config) { c.CACertHashes = []string{strings.Repeat("ab", 32)} }, discovery.BadPin, "sha256:<64"},
		"a short hash":   {func(c *discovery.Config) { c.CACertHashes = []string{pin[:len(pin)-2]} }, discovery.BadPin, "sha256:<64"},
		"a wrong digit":  {func(c *discovery.Config) { c.CACertHashes = []string{pin[:len(pin)-1] + "g"} }, discovery.BadPin, "sha256:<64"},
		"another kind":   {func(c *discovery.Config) { c.CACertHashes = []string{"sha512" + pin[6:]} }, discovery.BadPin, "sha256:<64"},
		"a good and bad": {func(c *discovery.Config) { c.CACertHashes = []string{pin, ""} }, discovery.BadPin, "sha256:<64"},
		"too many":       {func(c *discovery.Config) { c.CACertHashes = slices.Repeat([]string{pin}, 33) }, discovery.BadPin, "33 hashes"},
	} {
		t.Run(name, func(t *testing.T) {
			c := discovery.Config{Endpoint: "a:1", Token: parse(t, whole), CACertHashes: []string{pin}, Timeout: time.Nanosecond}
			tc.change(&c)
			_, err := discovery.Discover(t.Context(), c)
			refused(t, err, tc.reason, tc.says)
		})
	}
}

func TestHashesInCapitals(t *testing.T) {
	ca := newAuthority(t, "blue")
	f := newFake(t, ca)
	f.will(signed(t, kubeconfig(f.URL, ca)))
	c := by(t, f)
	c.CACertHashes = []string{strings.ToUpper(discovery.Pin(ca.cert))}
	if _, err := discovery.Discover(t.Context(), c); err != nil {
		t.Error(err)
	}
}
