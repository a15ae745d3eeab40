// SPDX-License-Identifier: Apache-2.0

package pageserver_test

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/internal/console/blueprint"
	"muster.dev/muster/internal/console/pageserver"
	"muster.dev/muster/internal/console/pageserver/pageservertest"
)

// token is that of the session.
func (b *bench) token() string {
	b.t.Helper()
	var of struct{ Token string }
	if err := json.Unmarshal(b.ask(http.MethodGet, "/api/session").Body.Bytes(), &of); err != nil || of.Token == "" {
		b.t.Fatalf("the session's token: %v", err)
	}
	return of.Token
}

// sends has a request send a body of a type, from a page of the console.
func (b *bench) sends(kind, body string) func(*http.Request) {
	return func(r *http.Request) {
		*r = *httptest.NewRequestWithContext(r.Context(), r.Method, r.URL.String(), strings.NewReader(body))
		r.Header.Set("Content-Type", kind)
		r.Header.Set("Origin", "http://"+host)
		if b.cookie != nil {
			r.AddCookie(b.cookie)
		}
	}
}

const (
	jsonType = "application/json"
	formType = "application/x-www-form-urlencoded"
)

// body is that of a request for a cluster, changed.
func body(change map[string]any) string {
	all := map[string]any{
		"clientRequestToken": "once", "name": "blue", "version": "1.36", "roleArn": pageservertest.ClusterRole, "subnetIds": []string{pageservertest.SubnetA, pageservertest.SubnetB},
		"nodeGroups": []any{map[string]any{"name": "web", "instanceTypes": []string{"t3.small"}, "desiredSize": 1, "maxSize": 2, "diskSize": 20}},
	}
	maps.Copy(all, change)
	raw, _ := json.Marshal(all) // of texts and numbers
	return string(raw)
}

const groupBody = `{"clusterName":"home","subnetIds":["` + pageservertest.SubnetA + `"],"name":"web","instanceTypes":["t3.small"],"maxSize":2,"diskSize":20}`

func TestMaking(t *testing.T) {
	b := newBench(t, pageservertest.World()).enter()
	token := b.token()
	for _, test := range []struct {
		what, path, kind, token, body string
		want                          int
		says                          []string
	}{
		{"without the token", "/api/clusters", jsonType, "", body(nil), 403, []string{"X-Muster-Token"}},
		{"with another token", "/api/clusters", jsonType, token + "x", body(nil), 403, nil},
		{"of another type", "/api/clusters", "text/plain", token, body(nil), 415, []string{"application/json"}},
		{"of no type", "/api/clusters", "", token, body(nil), 415, nil},
		{"not JSON", "/api/clusters", jsonType, token, "{", 400, []string{"reading the request"}},
		{"an unknown field", "/api/clusters", jsonType, token, body(map[string]any{"nodes": 1}), 400, []string{"nodes"}},
		{"too large", "/api/clusters", jsonType, token, body(map[string]any{"name": strings.Repeat("a", 40_000)}), 413, []string{"32768"}},
		{"wrong", "/api/clusters", jsonType, token, body(map[string]any{"name": "-", "version": "9"}), 400, []string{`"field": "name"`, `"field": "version"`}},
		{"a wrong group", "/api/nodegroups", jsonType, token, strings.Replace(groupBody, "20", "0", 1), 400, []string{`"field": "diskSize"`}},
		{"a cluster as a group", "/api/nodegroups", jsonType, token, body(nil), 400, nil},
		{"by the form without the token", "/new", formType, "", "request=a", 403, nil},
		{"a wrong form", "/new", formType, "", "groups=0&token=" + token, 400, []string{"invalid cluster name"}},
		{"read", "/api/clusters", "", "", "", 405, nil},
	} {
		method := http.MethodPost
		if test.what == "read" {
			method = http.MethodGet
		}
		w := b.ask(method, test.path, b.sends(test.kind, test.body), header(pageserver.TokenHeader, test.token))
		if w.Code != test.want {
			t.Errorf("%s: %d %s", test.what, w.Code, w.Body)
		}
		for _, part := range test.says {
			if !strings.Contains(w.Body.String(), part) {
				t.Errorf("%s: %s, without %s", test.what, w.Body, part)
			}
		}
	}
	if len(b.source.Plans) > 0 {
		t.Fatalf("made: %+v", b.source.Plans)
	}
	for path, content := range map[string]string{"/api/clusters": body(nil), "/api/nodegroups": groupBody} {
		b.reads = nil
		w := b.ask(http.MethodPost, path, b.sends(jsonType, content), header(pageserver.TokenHeader, token))
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"did": "created"`) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
		if !slices.ContainsFunc(b.reads, func(r string) bool { return strings.Contains(r, "create ") && strings.Contains(r, "nodegroup web") }) {
			t.Errorf("%s: on record are %q", path, b.reads)
		}
	}
	if len(b.source.Plans) != 2 {
		t.Errorf("made: %+v", b.source.Plans)
	}
}

// The form makes what the shown texts say, by one token of the session and one of the request.
func TestForm(t *testing.T) {
	b := newBench(t, pageservertest.World()).enter()
	page := b.ask(http.MethodGet, "/new").Body.String()
	if strings.Contains(page, "invalid cluster name") || !strings.Contains(page, `id="texts"`) {
		t.Errorf("the page is %s", page)
	}
	values := url.Values{
		"request": {"once"}, "groups": {"1"}, "name": {"blue"}, "version": {"1.36"}, "roleArn": {pageservertest.ClusterRole}, "subnetIds": {pageservertest.SubnetA, pageservertest.SubnetB}, "addons": {"coredns"},
		"nodeGroups[0].name": {"web"}, "nodeGroups[0].instanceTypes": {"t3.small, t3.medium"}, "nodeGroups[0].desiredSize": {"1"}, "nodeGroups[0].maxSize": {"2"}, "nodeGroups[0].diskSize": {"20"}, "nodeGroups[0].labels": {"a=b"},
	}
	shown := b.ask(http.MethodGet, "/new?"+values.Encode()).Body.String()
	for _, part := range []string{"aws eks create-nodegroup", "kind: ClusterConfig", "kind: NodeGroup", "t3.small t3.medium", "region: eu-west-1"} {
		if !strings.Contains(shown, part) {
			t.Errorf("the texts lack %s", part)
		}
	}
	if len(b.source.Plans) > 0 {
		t.Fatal("showing made something")
	}
	values.Set("token", b.token())
	b.source.Waits = true
	w := b.ask(http.MethodPost, "/new", b.sends(formType, values.Encode()))
	if w.Code != http.StatusAccepted || !strings.Contains(w.Body.String(), `data-again="create"`) || !strings.Contains(w.Body.String(), "Go on") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if len(b.source.Plans) != 1 || b.source.Plans[0].Token != "once" || b.source.Plans[0].Groups[0].Labels["a"] != "b" {
		t.Fatalf("made: %+v", b.source.Plans)
	}
	b.source.Waits, b.source.Refuses = false, &pageserver.RefusedError{Code: http.StatusForbidden, Problems: []blueprint.Problem{{Field: "nodeGroups[0].nodeRole", Message: "it is not yours"}}}
	if w := b.ask(http.MethodPost, "/new", b.sends(formType, values.Encode())); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), `<span class="wrong-field">it is not yours</span>`) {
		t.Errorf("refused: %d %s", w.Code, w.Body)
	}
	b.source.Refuses = errors.New("the management plane does not answer")
	if w := b.ask(http.MethodPost, "/new", b.sends(formType, values.Encode())); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "does not answer") {
		t.Errorf("away: %d", w.Code)
	}
	b.refuse = errors.New("the disk is full")
	b.source.Refuses, b.source.Plans = nil, nil
	if w := b.ask(http.MethodPost, "/new", b.sends(formType, values.Encode())); w.Code != http.StatusServiceUnavailable || len(b.source.Plans) > 0 {
		t.Errorf("without a record: %d, made %+v", w.Code, b.source.Plans)
	}
}

// A read-only console makes nothing, and shows no way to.
func TestReadOnly(t *testing.T) {
	b := newBenchWith(t, pageservertest.NewSource(pageservertest.World()), func(c *pageserver.Config) { c.ReadOnly = true }).enter()
	token := b.token()
	for path, method := range map[string]string{"/new": http.MethodGet, "/new?x": http.MethodPost, "/api/clusters": http.MethodPost, "/api/nodegroups": http.MethodPost} {
		w := b.ask(method, path, b.sends(jsonType, body(nil)), header(pageserver.TokenHeader, token))
		if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "read-only") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if page := b.ask(http.MethodGet, "/").Body.String(); strings.Contains(page, `href="/new"`) || !strings.Contains(page, "Read-only") {
		t.Error("the overview leads to what is off")
	}
	if len(b.source.Plans) > 0 {
		t.Errorf("made: %+v", b.source.Plans)
	}
}
