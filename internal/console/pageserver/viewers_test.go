// SPDX-License-Identifier: Apache-2.0

package pageserver_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

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
