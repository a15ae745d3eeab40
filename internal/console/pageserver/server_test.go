// SPDX-License-Identifier: Apache-2.0

package pageserver_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/console/pageserver"
	"muster.dev/muster/internal/console/pageserver/pageservertest"
	"muster.dev/muster/internal/console/view"
)

const host = "127.7.8.9:4321"

// bench is a server of which no port is opened.
type bench struct {
	t      *testing.T
	server *pageserver.Server
	source *pageservertest.Source
	http   http.Handler
	cookie *http.Cookie // of the session; nil without one

	mu     sync.Mutex
	clock  time.Time
	refuse error // of the record
	reads  []string
}

func newBench(t *testing.T, f view.Facts) *bench {
	t.Helper()
	return newBenchOf(t, pageservertest.NewSource(f))
}

func newBenchOf(t *testing.T, source *pageservertest.Source) *bench {
	t.Helper()
	return newBenchWith(t, source, func(*pageserver.Config) {})
}

func newBenchWith(t *testing.T, source *pageservertest.Source, change func(*pageserver.Config)) *bench {
	t.Helper()
	b := &bench{t: t, source: source, clock: pageservertest.Noon}
	config := pageserver.Config{
		Source: b.source, Flags: []string{"--state-dir=/srv/it's"}, Region: "eu-west-1", Logger: slog.New(slog.DiscardHandler),
		Now: func() time.Time {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.clock
		},
		Record: func(as, client, request string) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			if as != "" {
				client = as
			}
			b.reads = append(b.reads, client+" | "+request)
			return b.refuse
		},
	}
	change(&config)
	server, err := pageserver.New(config)
	if err != nil {
		t.Fatal(err)
	}
	b.server, b.http = server, server.Handler()
	pageserver.Keep(t, server)
	return b
}

// later moves the clock.
func (b *bench) later(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clock = b.clock.Add(d)
}

// ask sends a request, with the session's cookie if there is a session.
func (b *bench) ask(method, path string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	b.t.Helper()
	r := httptest.NewRequestWithContext(b.t.Context(), method, "http://"+host+path, nil)
	r.Header.Set("User-Agent", "a browser")
	if b.cookie != nil {
		r.AddCookie(b.cookie)
	}
	for _, do := range change {
		do(r)
	}
	w := httptest.NewRecorder()
	b.http.ServeHTTP(w, r)
	return w
}

// enter begins a session.
func (b *bench) enter() *bench {
	b.t.Helper()
	w := b.ask(http.MethodGet, b.server.Ticket())
	if cookies := w.Result().Cookies(); w.Code == http.StatusOK && len(cookies) == 1 {
		b.cookie = cookies[0]
		return b
	}
	b.t.Fatalf("entering: %d %s", w.Code, w.Body)
	return nil
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func form(token string) func(*http.Request) {
	return func(r *http.Request) {
		body := url.Values{"token": {token}}.Encode()
		*r = *httptest.NewRequestWithContext(r.Context(), r.Method, r.URL.String(), strings.NewReader(body)).WithContext(r.Context())
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
}

// reading are the paths that show something of an installation.
func reading() []string {
	return []string{
		"/", "/?q=home", "/certificates", "/access", "/access?q=alice", "/changes", "/machines/" + pageservertest.FirstOne, "/machines/" + pageservertest.FirstOne + "/logs", "/events?view=/",
		"/api/overview", "/api/certificates", "/api/access", "/api/changes", "/api/machines/" + pageservertest.FirstOne, "/api/explain", "/api/explain/machine/" + pageservertest.Refused,
		"/api/objects/machines", "/api/objects/machines/" + pageservertest.FirstOne,
		"/new", "/new?cluster=home", "/api/session", "/logs", asking("/logs", "limit 1"), asking("/api/logs/query", "limit 1"),
	}
}

func TestNothingWithoutASession(t *testing.T) {
	b := newBench(t, pageservertest.World())
	wrong := &http.Cookie{Name: "muster-console-4321", Value: "guessed"}
	for _, path := range reading() {
		for _, cookie := range []*http.Cookie{nil, wrong} {
			b.cookie = cookie
			if w := b.ask(http.MethodGet, path); w.Code != http.StatusUnauthorized || strings.Contains(w.Body.String(), pageservertest.FirstOne[2:]) && !strings.Contains(path, pageservertest.FirstOne) {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
		}
	}
	if len(b.reads) > 0 {
		t.Errorf("it reads: %q", b.reads)
	}
}

func TestTicketIsGoodOnce(t *testing.T) {
	b := newBench(t, pageservertest.World())
	first, late := b.server.Ticket(), b.server.Ticket()
	if w := b.ask(http.MethodGet, first); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `content="0;url=/"`) {
		t.Fatalf("the first time: %d %s", w.Code, w.Body)
	} else if c := w.Result().Cookies()[0]; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || len(c.Value) < 43 {
		t.Errorf("the cookie is %s", c)
	}
	b.later(10 * time.Minute)
	for what, path := range map[string]string{"replayed": first, "late": late, "guessed": "/enter/guessed", "empty": "/enter/%20"} {
		if w := b.ask(http.MethodGet, path); w.Code != http.StatusForbidden || len(w.Result().Cookies()) > 0 {
			t.Errorf("%s: %d %v", what, w.Code, w.Result().Cookies())
		}
	}
}

// With one ticket or session too many, the oldest goes.
func TestTicketsAndSessionsAreBounded(t *testing.T) {
	b := newBench(t, pageservertest.World())
	oldest := b.server.Ticket()
	for range 8 {
		b.later(time.Second)
		b.server.Ticket()
	}
	if w := b.ask(http.MethodGet, oldest); w.Code != http.StatusForbidden {
		t.Errorf("the oldest of nine tickets: %d", w.Code)
	}
	first := b.enter().cookie
	for range 8 {
		b.later(time.Second)
		b.cookie = nil
		b.enter()
	}
	last := b.cookie
	for cookie, want := range map[*http.Cookie]int{first: http.StatusUnauthorized, last: http.StatusOK} {
		b.cookie = cookie
		if w := b.ask(http.MethodGet, "/"); w.Code != want {
			t.Errorf("a session: %d, want %d", w.Code, want)
		}
	}
	b.later(12 * time.Hour)
	if w := b.ask(http.MethodGet, "/"); w.Code != http.StatusUnauthorized {
		t.Errorf("after twelve hours: %d", w.Code)
	}
}

func TestHeadersOfEveryAnswer(t *testing.T) {
	b := newBench(t, pageservertest.World()).enter()
	paths := slices.Concat(reading()[:6], []string{"/nothing", "/enter/x", "/assets/none", "/api/nothing", "/api/overview"})
	for _, path := range paths {
		w := b.ask(http.MethodGet, path)
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
		} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		policy := w.Header().Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self';", "style-src 'self';", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(policy, want) || strings.Contains(policy, "unsafe") {
				t.Errorf("%s: the policy is %q, without %s", path, policy, want)
			}
		}
	}
}

func TestNamesThatLeadHere(t *testing.T) {
	b := newBench(t, pageservertest.World()).enter()
	for name, want := range map[string]int{
		host: http.StatusOK, "127.0.0.1:4321": http.StatusOK, "localhost:4321": http.StatusOK, "LOCALHOST:4321": http.StatusOK, "[::1]:4321": http.StatusOK,
		"evil.example:4321": http.StatusMisdirectedRequest, "127.0.0.1.evil.example:4321": http.StatusMisdirectedRequest, "localhost.evil.example:4321": http.StatusMisdirectedRequest,
		"10.0.0.1:4321": http.StatusMisdirectedRequest, "0.0.0.0:4321": http.StatusMisdirectedRequest, "": http.StatusMisdirectedRequest, "127.0.0.1%2f.evil.example:4321": http.StatusMisdirectedRequest,
		"evil.localhost:4321": http.StatusMisdirectedRequest, "2130706433:4321": http.StatusMisdirectedRequest,
	} {
		w := b.ask(http.MethodGet, "/", func(r *http.Request) { r.Host = name })
		if w.Code != want {
			t.Errorf("%q: %d, want %d", name, w.Code, want)
		}
	}
}

func TestOtherSitesGetNothing(t *testing.T) {
	b := newBench(t, pageservertest.World()).enter()
	for _, tc := range []struct {
		what, method, path string
		headers            [][2]string
		want               int
	}{
		{"a page of the console", "GET", "/api/overview", [][2]string{{"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Mode", "cors"}}, 200},
		{"typed", "GET", "/", [][2]string{{"Sec-Fetch-Site", "none"}, {"Sec-Fetch-Mode", "navigate"}}, 200},
		{"a link elsewhere", "GET", "/", [][2]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Mode", "navigate"}}, 200},
		{"fetched from elsewhere", "GET", "/api/overview", [][2]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Mode", "no-cors"}}, 403},
		{"fetched from another port", "GET", "/api/overview", [][2]string{{"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Mode", "cors"}}, 403},
		{"another origin, of an old browser", "GET", "/api/overview", [][2]string{{"Origin", "http://evil.example"}}, 403},
		{"an opaque origin", "POST", "/leave", [][2]string{{"Origin", "null"}}, 403},
		{"a form elsewhere", "POST", "/leave", [][2]string{{"Origin", "http://evil.example"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Mode", "navigate"}}, 403},
		{"a form of another port", "POST", "/leave", [][2]string{{"Origin", "http://127.7.8.9:1"}}, 403},
		{"without the token", "POST", "/leave", [][2]string{{"Origin", "http://" + host}, {"Sec-Fetch-Site", "same-origin"}}, 403},
		{"of another method", "DELETE", "/", nil, 405},
	} {
		w := b.ask(tc.method, tc.path, func(r *http.Request) {
			for _, h := range tc.headers {
				r.Header.Set(h[0], h[1])
			}
		})
		if w.Code != tc.want {
			t.Errorf("%s: %d, want %d", tc.what, w.Code, tc.want)
		}
	}
	if w := b.ask(http.MethodGet, "/"); w.Code != http.StatusOK {
		t.Errorf("the session has ended: %d", w.Code)
	}
}

func TestLeaving(t *testing.T) {
	b := newBench(t, pageservertest.World()).enter()
	_, rest, _ := strings.Cut(b.ask(http.MethodGet, "/").Body.String(), `name="token" value="`)
	token, _, _ := strings.Cut(rest, `"`)
	leave := func(token string) *httptest.ResponseRecorder {
		return b.ask(http.MethodPost, "/leave", form(token), func(r *http.Request) { r.AddCookie(b.cookie) }, header("Origin", "http://"+host))
	}
	if w := leave(token + "x"); w.Code != http.StatusForbidden {
		t.Errorf("with a wrong token: %d", w.Code)
	}
	if w := leave(token); w.Code != http.StatusOK || w.Result().Cookies()[0].MaxAge >= 0 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w := b.ask(http.MethodGet, "/"); w.Code != http.StatusUnauthorized {
		t.Errorf("after that: %d", w.Code)
	}
}

// A read is written down before anything is read, by whom and what. Nothing is shown where that cannot be.
func TestEveryReadIsOnRecord(t *testing.T) {
	b := newBench(t, pageservertest.World()).enter()
	for _, path := range reading() {
		if strings.HasPrefix(path, "/events") {
			continue
		}
		b.reads, b.refuse = nil, nil
		b.ask(http.MethodGet, path)
		if diff := cmp.Diff([]string{"a browser | GET " + path}, b.reads); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
		b.refuse = errors.New("nothing is read, since the disk is full")
		if w := b.ask(http.MethodGet, path); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "the disk is full") {
			t.Errorf("%s without a record: %d %s", path, w.Code, w.Body)
		}
	}
}

func TestData(t *testing.T) {
	f := pageservertest.World()
	f.Machines[0].Spec.UserData = []byte("secret")
	b := newBench(t, f).enter()
	for path, want := range map[string]string{
		"/api/explain": `"cause": "M-IAM-01"`, "/api/explain/machine/" + pageservertest.Refused: `"verdict": "Cause"`, "/api/objects/machines": `"items": [`,
		"/api/objects/machines/" + pageservertest.FirstOne: `"clusterName": "home"`, "/api/overview?q=gpu": `"matching": 3`, "/api/machines/" + pageservertest.FirstOne: `"siblings": 13`,
		"/api/certificates": `"rule": "names-assigned"`, "/api/access": `"rule": "no-entry"`, "/api/access?q=ghijkl": `"id": "ghijkl"`, "/api/changes": `"type": "VersionUpdate"`, "/api/machines/172.31.0.5": pageservertest.FirstOne,
	} {
		w := b.ask(http.MethodGet, path)
		if w.Code != http.StatusOK || !json.Valid(w.Body.Bytes()) || !strings.Contains(w.Body.String(), want) || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %s, without %s", path, w.Code, w.Body, want)
		}
		if strings.Contains(w.Body.String(), "c2VjcmV0") {
			t.Errorf("%s: has user data", path)
		}
	}
	for _, path := range []string{"/machines/i-0", "/api/machines/i-0", "/api/explain/pod/a/b", "/api/objects/secrets", "/api/objects/machines/i-0", "/machines/i-0/logs"} {
		if w := b.ask(http.MethodGet, path); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// A page of an installation that answers no more has what was seen last, and says so.
func TestSilentInstallation(t *testing.T) {
	b := newBench(t, pageservertest.World()).enter()
	if w := b.ask(http.MethodGet, "/api/overview"); w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	b.source.Set(view.Facts{}, errors.New("the management plane is not running"))
	b.later(time.Minute)
	w := b.ask(http.MethodGet, "/api/overview")
	if body := w.Body.String(); !strings.Contains(body, "the management plane is not running") || !strings.Contains(body, "anything since 12:00:00 UTC") || !strings.Contains(body, pageservertest.Refused) {
		t.Errorf("%d %s", w.Code, body)
	}
	never := pageservertest.NewSource(view.Facts{})
	never.Set(view.Facts{}, errors.New("the management plane is not running"))
	silent := newBenchOf(t, never).enter()
	silent.later(time.Hour)
	if w := silent.ask(http.MethodGet, "/"); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "the management plane is not running") {
		t.Errorf("of which nothing was ever seen: %d %s", w.Code, w.Body)
	}
}

// An installation that hangs keeps nobody longer than an answer may take: what was seen before is there with why it is not newer,
// and without that it is said that nothing can be seen.
func TestHangingInstallation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, pageservertest.World()).enter()
		b.ask(http.MethodGet, "/")
		b.source.Hang()
		hanging := pageservertest.NewSource(view.Facts{})
		hanging.Hang()
		never := newBenchOf(t, hanging).enter()
		for _, path := range []string{"/", "/api/overview", "/api/explain"} {
			for name, test := range map[string]struct {
				*bench
				code int
				says string
			}{
				"before": {b, http.StatusOK, "anything since 12:00:00 UTC"},
				"never":  {never, http.StatusServiceUnavailable, "the installation has not answered for 10 seconds"},
			} {
				test.later(time.Hour)
				began := time.Now()
				w := test.ask(http.MethodGet, path)
				if took := time.Since(began); w.Code != test.code || !strings.Contains(w.Body.String(), test.says) || took > 10*time.Second {
					t.Errorf("%s, seen %s: %d after %v, %.300s", path, name, w.Code, took, w.Body)
				}
			}
		}
	})
}
