// SPDX-License-Identifier: Apache-2.0

package pageserver_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/console/pageserver/pageservertest"
	"muster.dev/muster/internal/console/view"
	"muster.dev/muster/internal/iam/viewer"
)

const (
	anna = "arn:aws:iam::000000000000:user/anna"
	bert = "arn:aws:iam::000000000000:user/bert"
)

// all are all rights to the cluster home.
func all() view.Rights {
	return view.Rights{Machines: true, Subnets: true, Roles: true, Account: true, Of: map[string]view.ClusterRights{
		"home": {Describe: true, Groups: true, Updates: true, Access: true, Pods: true, Logs: true, Nodes: true, Requests: true, Tokens: true},
	}}
}

// signing is a bench with two people who can sign in; Anna has all rights to home, and Bert none.
func signing(t *testing.T) *bench {
	t.Helper()
	b := newBench(t, pageservertest.World())
	b.source.Viewers = map[string]viewer.Viewer{"k8s-aws-v1.anna": {ARN: anna}, "k8s-aws-v1.anna2": {ARN: anna}, "k8s-aws-v1.bert": {ARN: bert}}
	b.source.May = map[string]view.Rights{anna: all(), bert: {}}
	b.source.Kept = pageservertest.Requests()
	return b
}

// signsIn begins a session by a token, as a form of the console sends it.
func (b *bench) signsIn(token string) int {
	b.t.Helper()
	b.cookie = nil
	w := b.ask(http.MethodPost, "/sign-in", b.sends(formType, url.Values{"proof": {token}}.Encode()))
	if cookies := w.Result().Cookies(); len(cookies) == 1 {
		b.cookie = cookies[0]
	}
	return w.Code
}

func TestSignIn(t *testing.T) {
	b := signing(t)
	if page := b.ask(http.MethodGet, "/sign-in"); page.Code != http.StatusOK || !strings.Contains(page.Body.String(), "--cluster-name "+b.server.Audience()) {
		t.Errorf("%d %s", page.Code, page.Body)
	}
	if !viewer.IsAudience(b.server.Audience()) || viewer.IsAudience("home") {
		t.Errorf("the audience is %s", b.server.Audience())
	}
	for _, test := range []struct {
		what, token string
		want        int
	}{
		{"somebody's", "k8s-aws-v1.other", 403},
		{"nothing", " ", 400},
		{"not a credential", `{"status":`, 400},
		{"her own", " k8s-aws-v1.anna\n", 200},
		{"used before", "k8s-aws-v1.anna", 403},
		{"as aws prints it", `{"kind":"ExecCredential","status":{"token":"k8s-aws-v1.anna2"}}`, 200},
	} {
		if code := b.signsIn(test.token); code != test.want || (b.cookie != nil) != (test.want == 200) {
			t.Errorf("%s: %d, a session: %v", test.what, code, b.cookie != nil)
		}
	}
	elsewhere := b.ask(http.MethodPost, "/sign-in", b.sends(formType, "proof=k8s-aws-v1.bert"), header("Origin", "http://evil.example"))
	if elsewhere.Code != http.StatusForbidden || len(elsewhere.Result().Cookies()) > 0 {
		t.Errorf("by another site's form: %d", elsewhere.Code)
	}
}

// Whoever has no rights sees nothing of what others see at the same time, whatever was shown before.
func TestViewersSeeWhatTheyMay(t *testing.T) {
	b := signing(t)
	owner := b.enter().cookie
	b.signsIn("k8s-aws-v1.anna")
	her := b.cookie
	b.signsIn("k8s-aws-v1.bert")
	his := b.cookie
	names := []string{pageservertest.FirstOne, pageservertest.Refused, "ghijkl", ">home<", `"home"`}
	for _, path := range reading() {
		if strings.HasPrefix(path, "/events") || path == "/api/session" {
			continue
		}
		for who, cookie := range map[string]*http.Cookie{"owner": owner, "anna": her, "bert": his} {
			b.cookie, b.reads = cookie, nil
			w := b.ask(http.MethodGet, path)
			if as := map[string]string{"owner": "a browser", "anna": anna, "bert": bert}[who]; len(b.reads) == 0 || !strings.HasPrefix(b.reads[0], as+" | ") {
				t.Errorf("%s of %s: on record are %q", path, who, b.reads)
			}
			own := strings.HasPrefix(path, "/api/objects")
			switch {
			case who == "owner" && w.Code != http.StatusOK, who == "anna" && !own && w.Code != http.StatusOK, who == "anna" && own && w.Code != http.StatusForbidden:
				t.Errorf("%s: %s gets %d %.300s", path, who, w.Code, w.Body)
			case who != "bert":
				continue
			}
			for _, name := range names {
				if strings.Contains(w.Body.String(), name) && !strings.Contains(path, strings.Trim(name, `"><`)) { // but for what he names
					t.Errorf("%s: bert sees %s (%d)", path, name, w.Code)
				}
			}
		}
	}
}

// A right that ends, ends within seconds; an identity that ended sees nothing; another's session stays.
func TestRightsEnd(t *testing.T) {
	b := signing(t)
	b.signsIn("k8s-aws-v1.anna")
	if w := b.ask(http.MethodGet, "/"); !strings.Contains(w.Body.String(), pageservertest.FirstOne) {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	less := all()
	less.Machines = false
	b.source.Grant(anna, &less)
	b.later(3 * time.Second)
	if w := b.ask(http.MethodGet, "/"); w.Code != http.StatusOK || strings.Contains(w.Body.String(), pageservertest.FirstOne) {
		t.Errorf("without machines: %d", w.Code)
	}
	if w := b.ask(http.MethodGet, "/machines/"+pageservertest.FirstOne+"/logs"); w.Code != http.StatusNotFound {
		t.Errorf("logs: %d %s", w.Code, w.Body)
	}
	b.source.Grant(anna, nil)
	b.later(3 * time.Second)
	for _, path := range []string{"/", "/api/access", "/new", "/logs", "/events?view=/", asking("/api/logs/query", "limit 1")} {
		if w := b.ask(http.MethodGet, path); w.Code != http.StatusForbidden || strings.Contains(w.Body.String(), "home") && !strings.Contains(path, "home") {
			t.Errorf("%s after its end: %d %.200s", path, w.Code, w.Body)
		}
	}
}

// Clusters that an IAM identity makes are made as that identity; a session of it does not have the token of another session.
func TestViewersMake(t *testing.T) {
	b := signing(t)
	b.enter()
	owner := b.token()
	b.signsIn("k8s-aws-v1.bert")
	if w := b.ask(http.MethodPost, "/api/clusters", b.sends(jsonType, body(nil)), header("X-Muster-Token", owner)); w.Code != http.StatusForbidden || len(b.source.Plans) > 0 {
		t.Errorf("with another session's token: %d", w.Code)
	}
	if w := b.ask(http.MethodPost, "/api/clusters", b.sends(jsonType, body(nil)), header("X-Muster-Token", b.token())); w.Code != http.StatusOK || b.source.By == nil || b.source.By.ARN != bert {
		t.Errorf("%d %s, by %v", w.Code, w.Body, b.source.By)
	}
	if !slices.ContainsFunc(b.reads, func(r string) bool { return strings.HasPrefix(r, bert+" | create cluster blue") }) {
		t.Errorf("on record are %q", b.reads)
	}
}

// An identity that signs in again and again ends its own sessions, not those of others, whatever its role's sessions are called.
func TestNobodyIsPushedOut(t *testing.T) {
	b := signing(t)
	b.signsIn("k8s-aws-v1.anna")
	her := b.cookie
	codes := map[int]int{}
	for n := range 80 {
		token := fmt.Sprintf("k8s-aws-v1.role%d", n)
		b.source.Viewers[token] = viewer.Viewer{ARN: fmt.Sprintf("arn:aws:sts::000000000000:assumed-role/r/s%d", n), UserID: fmt.Sprintf("AROAR:s%d", n)}
		b.later(time.Second)
		codes[b.signsIn(token)]++
	}
	if codes[http.StatusOK] != 64 || codes[http.StatusForbidden] != 16 {
		t.Errorf("a role signs in: %v", codes)
	}
	if code := b.signsIn("k8s-aws-v1.bert"); code != http.StatusOK {
		t.Errorf("Bert after them: %d", code)
	}
	b.cookie = her
	if w := b.ask(http.MethodGet, "/"); w.Code != http.StatusOK {
		t.Errorf("Anna's session: %d", w.Code)
	}
}

// All the sessions of an identity have six streams together, which are not those of others.
func TestStreamsOfAnIdentity(t *testing.T) {
	b := signing(t)
	s := serve(t, b)
	owner := b.cookie
	b.signsInAt(s, "k8s-aws-v1.anna")
	for range 3 {
		until(t, s.get("/events?view=/").body, "beat", "as of")
	}
	b.signsInAt(s, "k8s-aws-v1.anna2")
	for range 3 {
		until(t, s.get("/events?view=/").body, "beat", "as of")
	}
	if code := s.get("/events?view=/").code; code != http.StatusServiceUnavailable {
		t.Errorf("the seventh stream: %d", code)
	}
	b.signsInAt(s, "k8s-aws-v1.bert")
	until(t, s.get("/events?view=/").body, "beat", "as of")
	b.cookie = owner
	until(t, s.get("/events?view=/").body, "beat", "as of")
}

// signsInAt begins a session at a server on a port.
func (b *bench) signsInAt(s *served, token string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, s.address+"/sign-in", strings.NewReader(url.Values{"proof": {token}}.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", formType)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if len(response.Cookies()) != 1 {
		b.t.Fatalf("signing in: %d", response.StatusCode)
	}
	b.cookie = response.Cookies()[0]
}

// Lines of a log end with the right to them, also while the installation does not answer, so that no reading comes.
func TestLinesEndWithTheRight(t *testing.T) {
	for what, rights := range map[string]*view.Rights{"fewer rights": {}, "an identity that ended": nil} {
		b := signing(t)
		s := serve(t, b)
		b.signsInAt(s, "k8s-aws-v1.anna")
		events := s.get("/events?logs=new&view=/machines/" + pageservertest.FirstOne).body
		s.source.More <- "line one"
		until(t, events, "log", "line one")
		b.source.Hang()
		b.source.Grant(anna, rights)
		b.later(3 * time.Second)
		s.source.More <- "line two"
		if rights != nil {
			s.end()
		}
		for line := ""; !strings.HasPrefix(line, "event: end"); {
			var err error
			if line, err = events.ReadString('\n'); err != nil || strings.Contains(line, "line two") {
				t.Fatalf("%s: %s %v", what, line, err)
			}
		}
	}
}

// An explanation is of the machine that the viewer sees, though a machine of another cluster goes by the same name.
func TestExplainedIsWhatIsSeen(t *testing.T) {
	f := pageservertest.World()
	other := *f.Machines[0].DeepCopy()
	other.Name, other.Spec.ClusterName = "i-0000000000000away", "away"
	f.Machines = append([]v1alpha1.Machine{other}, f.Machines...)
	b := signing(t)
	b.source.Set(f, nil)
	b.signsIn("k8s-aws-v1.anna")
	node := f.Machines[1].Status.NodeName
	w := b.ask(http.MethodGet, "/api/explain/machine/"+node)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), f.Machines[1].Name) {
		t.Errorf("%s: %d %.300s", node, w.Code, w.Body)
	}
}

// A token that comes twice at once begins one session, whose cookie no script and no other site has.
func TestOneSessionOfOneToken(t *testing.T) {
	b := signing(t)
	var group sync.WaitGroup
	answers := make([]*http.Response, 20)
	for i := range answers {
		group.Go(func() {
			answers[i] = b.ask(http.MethodPost, "/sign-in", b.sends(formType, url.Values{"proof": {"k8s-aws-v1.anna"}}.Encode())).Result()
		})
	}
	group.Wait()
	var cookies []*http.Cookie
	for _, a := range answers {
		cookies = append(cookies, a.Cookies()...)
		_ = a.Body.Close()
	}
	if len(cookies) != 1 {
		t.Fatalf("%d sessions began", len(cookies))
	}
	if c := cookies[0]; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Domain != "" || c.Path != "/" || c.MaxAge != 0 || !c.Expires.IsZero() || len(c.Value) < 40 {
		t.Errorf("the cookie is %v", c)
	}
}

// Nothing but a form that has a token begins a session: no address, no header, no body without end.
func TestNoSignInByOtherMeans(t *testing.T) {
	b := signing(t)
	long := strings.Repeat("x", 40<<10)
	for what, w := range map[string]*httptest.ResponseRecorder{
		"an address":          b.ask(http.MethodGet, "/sign-in?proof=k8s-aws-v1.anna"),
		"a query":             b.ask(http.MethodPost, "/sign-in?proof=k8s-aws-v1.anna", b.sends(formType, "")),
		"JSON":                b.ask(http.MethodPost, "/sign-in", b.sends(jsonType, `{"proof":"k8s-aws-v1.anna"}`)),
		"a body without end":  b.ask(http.MethodPost, "/sign-in", b.sends(formType, "proof=k8s-aws-v1.anna&more="+long)),
		"a very long token":   b.ask(http.MethodPost, "/sign-in", b.sends(formType, "proof="+long[:20<<10])),
		"a sandbox's form":    b.ask(http.MethodPost, "/sign-in", b.sends(formType, "proof=k8s-aws-v1.anna"), header("Origin", "null")),
		"a form of a port":    b.ask(http.MethodPost, "/sign-in", b.sends(formType, "proof=k8s-aws-v1.anna"), header("Origin", "http://127.7.8.9:1")),
		"another site's":      b.ask(http.MethodPost, "/sign-in", b.sends(formType, "proof=k8s-aws-v1.anna"), header("Sec-Fetch-Site", "cross-site"), header("Sec-Fetch-Mode", "navigate")),
		"a same site's":       b.ask(http.MethodPost, "/sign-in", b.sends(formType, "proof=k8s-aws-v1.anna"), header("Sec-Fetch-Site", "same-site"), header("Sec-Fetch-Mode", "navigate")),
		"a name that is ours": b.ask(http.MethodPost, "/sign-in", b.sends(formType, "proof=k8s-aws-v1.anna"), func(r *http.Request) { r.Host = "console.evil.example:4321" }),
	} {
		if cookies := w.Result().Cookies(); len(cookies) > 0 || w.Code < 400 && what != "an address" {
			t.Errorf("by %s: %d, %v", what, w.Code, cookies)
		}
	}
}
