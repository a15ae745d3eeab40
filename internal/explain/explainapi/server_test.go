// SPDX-License-Identifier: Apache-2.0

package explainapi

import (
	"encoding/json"
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/plane/component"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const nodes = "/apis/explain.muster.dev/v1alpha1/nodeexplanations"

// Only the API server of the cluster may speak, whatever the headers of others say. Other programs have certificates of
// the same authority.
func TestOnlyTheAPIServerMayAsk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for credential, want := range map[string]int{
		"":                            0,
		"service":                     0, // of system:masters, by the cluster's authority
		"kubelet-client":              0,
		component.CredentialPlane:     http.StatusUnauthorized,
		"pod-identity-webhook-client": http.StatusUnauthorized,
		"front-proxy-client":          http.StatusOK,
	} {
		before := len(w.reads)
		code, body, err := w.ask(credential, http.MethodGet, nodes, bob())
		if (err == nil) != (want != 0) || code != want {
			t.Errorf("%q: %d, %v: %s", credential, code, err, body)
		}
		if read := len(w.reads) > before; read != (want == http.StatusOK) {
			t.Errorf("%q: read: %v", credential, read)
		}
	}
	if len(w.asked) != 1 {
		t.Errorf("the API server was asked %d times", len(w.asked))
	}
	for name, header := range map[string]http.Header{"nobody": {}, "an empty name": {"X-Remote-User": {""}}, "two names": {"X-Remote-User": {"a", "b"}}} {
		if code, _, err := w.ask("front-proxy-client", http.MethodGet, nodes, header); err != nil || code != http.StatusUnauthorized {
			t.Errorf("for %s: %d, %v", name, code, err)
		}
	}
	plain := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, nodes, http.NoBody)
	r.Header = bob()
	if w.api.ServeHTTP(plain, r); plain.Code != http.StatusUnauthorized || len(w.asked) != 1 {
		t.Errorf("without TLS: %d", plain.Code)
	}
}

// The cluster's authorizer decides, about the user whom the API server names.
func TestTheClusterDecides(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if code, body := w.get(nodes + "/" + refused); code != http.StatusOK {
		t.Fatalf("%d: %s", code, body)
	}
	want := authorizationv1.SubjectAccessReviewSpec{
		User: "bob", UID: "u-1", Groups: []string{"ops", "people", "system:authenticated"}, Extra: map[string]authorizationv1.ExtraValue{"example.com/team": {"a", "b"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Group: Group, Version: Version, Resource: "nodeexplanations", Name: refused, Verb: "get"},
	}
	if !reflect.DeepEqual(w.asked[0], want) {
		t.Errorf("asked %+v", w.asked[0])
	}
	read := w.reads[0]
	if read.User != "bob" || read.Cluster != "home" || read.With != Group || read.Command != "GET "+nodes+"/"+refused {
		t.Errorf("recorded %+v", read)
	}
	for name, test := range map[string]struct {
		status authorizationv1.SubjectAccessReviewStatus
		err    error
		path   string
		code   int
		says   string
	}{
		"no":         {authorizationv1.SubjectAccessReviewStatus{}, nil, nodes, 403, `nodeexplanations.explain.muster.dev is forbidden: User \"bob\" cannot list resource`},
		"denied":     {authorizationv1.SubjectAccessReviewStatus{Allowed: true, Denied: true}, nil, nodes + "/x", 403, `cannot get resource`},
		"discovery":  {authorizationv1.SubjectAccessReviewStatus{}, nil, "/apis", 403, `cannot get path \"/apis\"`},
		"health":     {authorizationv1.SubjectAccessReviewStatus{}, nil, "/readyz", 403, `cannot get path \"/readyz\"`},
		"nowhere":    {authorizationv1.SubjectAccessReviewStatus{}, nil, "/secrets", 403, `cannot get path`},
		"not known":  {authorizationv1.SubjectAccessReviewStatus{Allowed: true}, errors.New("it hung"), nodes, 503, "does not say whether you may"},
		"of nothing": {authorizationv1.SubjectAccessReviewStatus{Allowed: true}, nil, nodes + "/none", 404, `nodeexplanations.explain.muster.dev \"none\" not found`},
	} {
		w.status, w.err = test.status, test.err
		before := len(w.reads)
		code, body := w.get(test.path)
		if code != test.code || !strings.Contains(body, test.says) || strings.Contains(body, "it hung") {
			t.Errorf("%s: %d %s", name, code, body)
		}
		if test.code != 404 && len(w.reads) > before {
			t.Errorf("%s: something was read", name)
		}
	}
}

// The API has objects of its own cluster alone.
func TestOwnClusterAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, path := range []string{nodes, "/apis/explain.muster.dev/v1alpha1/csrexplanations", "/apis/explain.muster.dev/v1alpha1/clusterexplanations"} {
		code, body := w.get(path)
		if code != http.StatusOK || strings.Contains(body, foreign) || strings.Contains(body, "away") || strings.Contains(body, "i-0000000000000000f") {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	for _, path := range []string{"nodeexplanations/" + foreign, "nodeexplanations/i-0000000000000000f", "nodeexplanations/i-0000000000000000a", "clusterexplanations/away", "csrexplanations/other"} {
		if code, body := w.get("/apis/explain.muster.dev/v1alpha1/" + path); code != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if w.madeFor != 1 {
		t.Errorf("clients were made %d times", w.madeFor)
	}
}

func TestExplanations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for file, path := range map[string]string{
		"node.json": nodes + "/" + refused, "nodes.json": nodes, "csr.json": "/apis/explain.muster.dev/v1alpha1/csrexplanations/" + request,
		"cluster.json": "/apis/explain.muster.dev/v1alpha1/clusterexplanations/home",
	} {
		code, body := w.get(path, "application/json")
		if code != http.StatusOK || strings.Contains(body, "only-in-a-log") {
			t.Errorf("%s: %d %s", path, code, body)
		}
		golden(t, file, body)
	}
	_, body := w.get(nodes, "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
	golden(t, "table.json", body)
	var one explanation
	_, body = w.get(nodes + "/" + refused)
	if err := json.Unmarshal([]byte(body), &one); err != nil || one.Report.Verdict != diagnosis.Found || one.Report.Causes[0].Cause != "M-IAM-01" || one.Report.Kind != "node" {
		t.Errorf("%v: %+v", err, one)
	}
	for query, want := range map[string]int{
		"?fieldSelector=metadata.name%3D" + refused: 1, "?fieldSelector=metadata.name%3Dnone": 0, "?labelSelector=a%3Db": 0, "?labelSelector=a%21%3Db": 3, "?limit=1&pretty=true": 3,
	} {
		var all explanations
		_, body := w.get(nodes + query)
		if err := json.Unmarshal([]byte(body), &all); err != nil || len(all.Items) != want {
			t.Errorf("%s: %v: %s", query, err, body)
		}
	}
}

func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, test := range []struct {
		method, path string
		code         int
	}{
		{http.MethodPost, nodes, 405},
		{http.MethodDelete, nodes + "/" + refused, 405},
		{http.MethodGet, nodes + "?watch=true", 405},
		{http.MethodGet, nodes + "?watch=1", 405},
		{http.MethodGet, nodes + "?fieldSelector=spec.x%3D1", 400},
		{http.MethodGet, nodes + "?fieldSelector=metadata.name%21%3Dx", 400},
		{http.MethodGet, nodes + "?labelSelector=%21%21", 400},
		{http.MethodGet, nodes + "/a/b", 404},
		{http.MethodGet, nodes + "/", 404},
		{http.MethodGet, "/apis/explain.muster.dev/v1alpha1/secretexplanations", 404},
		{http.MethodPost, "/apis", 405},
		{http.MethodGet, "/metrics", 404},
	} {
		code, body, err := w.ask("front-proxy-client", test.method, test.path, bob())
		var status metav1.Status
		if err != nil || code != test.code || json.Unmarshal([]byte(body), &status) != nil || status.Kind != "Status" || int(status.Code) != test.code {
			t.Errorf("%s %s: %d %v %s", test.method, test.path, code, err, body)
		}
	}
	if len(w.reads) > 0 {
		t.Errorf("%+v", w.reads)
	}
}

// Where something is amiss, nothing is read, or the answer says so.
func TestWhatHappensIf(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unkept = errors.New("the disk is full")
	if code, body := w.get(nodes); code != 503 || w.madeFor > 0 || strings.Contains(body, "disk") {
		t.Errorf("without the record: %d %s", code, body)
	}
	w.unkept, w.unmade = nil, errors.New("no key")
	if code, body := w.get(nodes); code != 503 || strings.Contains(body, "no key") {
		t.Errorf("without clients: %d %s", code, body)
	}
	w.unmade = nil
	w.api.Namespace = "gone"
	if code, _ := w.get(nodes); code != 503 {
		t.Errorf("of a cluster that the management plane does not have: %d", code)
	}
	w.api.Namespace = "home"
	w.api.waiting.Store(mostWaiting)
	if code, _ := w.get(nodes); code != http.StatusTooManyRequests {
		t.Errorf("many ask: %d", code)
	}
	w.api.waiting.Store(0)
	if code, _ := w.get(nodes); code != http.StatusOK {
		t.Errorf("none does: %d", code)
	}
}

// The API says what it has, as upstream's aggregator and kubectl ask.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for path, want := range map[string][]string{
		"/apis":                             {`"kind":"APIGroupList"`, `"groupVersion":"explain.muster.dev/v1alpha1"`},
		"/apis/explain.muster.dev":          {`"kind":"APIGroup"`},
		"/apis/explain.muster.dev/v1alpha1": {`"kind":"APIResourceList"`, `"name":"csrexplanations"`, `"namespaced":false`, `"verbs":["get","list"]`},
		"/openapi/v3":                       {`"/openapi/v3/apis/explain.muster.dev/v1alpha1"`},
		"/readyz":                           {"ok"},
	} {
		code, body := w.get(path)
		if code != http.StatusOK {
			t.Errorf("%s: %d", path, code)
		}
		has(t, body, want...)
	}
	_, body := w.get("/apis", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList")
	has(t, body, `"kind":"APIGroupDiscoveryList"`, `"scope":"Cluster"`, `"kind":"CSRExplanation"`)
	for path, file := range map[string]string{"/openapi/v2": "openapi-v2.json", "/openapi/v3/apis/explain.muster.dev/v1alpha1": "openapi-v3.json"} {
		_, body := w.get(path)
		golden(t, file, body+"\n")
	}
	if len(w.reads) > 0 || slices.ContainsFunc(w.asked, func(s authorizationv1.SubjectAccessReviewSpec) bool { return s.NonResourceAttributes == nil }) {
		t.Errorf("%+v, %+v", w.reads, w.asked)
	}
}

func TestWantsTable(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]bool{
		"": false, "application/json": false, "application/json;as=Table;v=v1;g=meta.k8s.io,application/json": true,
		"application/json, application/json;as=Table;g=meta.k8s.io;v=v1": false, "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json": false,
		"application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json": false,
	} {
		if got := wantsTable([]string{accept}); got != want {
			t.Errorf("%s: %v", accept, got)
		}
	}
}

// A user that may get one object gets no other by a selector beside its name, which the API server does not look at.
func TestASelectorNamesNoOtherObject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	head, tail := refused[:len(refused)-2], refused[len(refused)-2:]
	for path, want := range map[string]string{
		nodes + "/" + head + "?fieldSelector=metadata.name%3D" + tail:      head,
		nodes + "/" + refused + "?fieldSelector=metadata.name%3D" + joined: refused,
		nodes + "/" + refused + "?labelSelector=a%3Db":                     refused,
	} {
		w.asked, w.reads = nil, nil
		code, body := w.get(path)
		if len(w.asked) != 1 || w.asked[0].ResourceAttributes.Name != want || w.asked[0].ResourceAttributes.Verb != "get" {
			t.Fatalf("%s: asked about %+v", path, w.asked)
		}
		if there := want == refused; there != (code == http.StatusOK) || there != strings.Contains(body, `"name": "`+refused+`"`) {
			t.Errorf("%s, allowed for %s: %d %.300s", path, want, code, body)
		}
	}
}

// Who may list one name alone is asked about that name.
func TestAListOfOneName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for query, want := range map[string]string{"": "", "?fieldSelector=metadata.name%3D" + refused: refused, "?fieldSelector=spec.x%3D" + refused: "", "?labelSelector=a%3Db": ""} {
		w.asked = nil
		w.get(nodes + query)
		if len(w.asked) != 1 || w.asked[0].ResourceAttributes.Name != want || w.asked[0].ResourceAttributes.Verb != "list" {
			t.Errorf("%s: asked about %+v", query, w.asked)
		}
	}
}
