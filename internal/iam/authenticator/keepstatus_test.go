// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	fcache "k8s.io/client-go/tools/cache/testing"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	iamv1alpha1 "muster.dev/muster/api/iamauthenticator/v1alpha1"
	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/iam/tokenverify"
)

// statuses are objects whose status can be applied, and two sources that tell of them.
type statuses struct {
	entries, mappings *fcache.FakeControllerSource

	mu      sync.Mutex
	writes  []string // resource/name
	err     error
	entry   map[string]*accessv1alpha1.AccessEntry
	mapping map[string]*iamv1alpha1.IAMIdentityMapping
}

func newStatuses() *statuses {
	return &statuses{
		entries: fcache.NewFakeControllerSource(), mappings: fcache.NewFakeControllerSource(),
		entry: map[string]*accessv1alpha1.AccessEntry{}, mapping: map[string]*iamv1alpha1.IAMIdentityMapping{},
	}
}

func (s *statuses) addEntry(name, arn string, generation int64, change func(*accessv1alpha1.AccessEntry)) {
	e := &accessv1alpha1.AccessEntry{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-e", Generation: generation, CreationTimestamp: metav1.Unix(int64(len(s.entry)), 0)},
		Spec:       accessv1alpha1.AccessEntrySpec{PrincipalARN: arn, Type: accessv1alpha1.TypeStandard},
	}
	if change != nil {
		change(e)
	}
	s.mu.Lock()
	_, there := s.entry[name]
	s.entry[name] = e
	s.mu.Unlock()
	if there {
		s.entries.Modify(e.DeepCopy())
		return
	}
	s.entries.Add(e.DeepCopy())
}

func (s *statuses) addMapping(name, arn string, generation int64) {
	m := &iamv1alpha1.IAMIdentityMapping{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-m", Generation: generation}, Spec: iamv1alpha1.IAMIdentityMappingSpec{ARN: arn, Username: name},
	}
	s.mu.Lock()
	before, there := s.mapping[name]
	if there {
		m.Status = before.Status
	}
	s.mapping[name] = m
	s.mu.Unlock()
	if there {
		s.mappings.Modify(m.DeepCopy())
		return
	}
	s.mappings.Add(m.DeepCopy())
}

// apply does what an API server does, and tells the sources.
func (s *statuses) apply(_ context.Context, resource schema.GroupVersionResource, object *unstructured.Unstructured) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes = append(s.writes, resource.Resource+"/"+object.GetName())
	if s.err != nil {
		return s.err
	}
	fields, _ := object.Object["status"].(map[string]any)
	if e, ok := s.entry[object.GetName()]; ok && resource.Resource == "accessentries" {
		var status accessv1alpha1.AccessEntryStatus
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &status); err != nil {
			return err
		}
		e = e.DeepCopy()
		for _, c := range status.Conditions {
			apimeta.SetStatusCondition(&e.Status.Conditions, c)
		}
		s.entry[e.Name] = e
		s.entries.Modify(e.DeepCopy())
		return nil
	}
	m, ok := s.mapping[object.GetName()]
	if !ok {
		return apierrors.NewNotFound(resource.GroupResource(), object.GetName())
	}
	m = m.DeepCopy()
	m.Status = iamv1alpha1.IAMIdentityMappingStatus{} // fields that one owner does not apply any more are gone
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &m.Status); err != nil {
		return err
	}
	s.mapping[m.Name] = m
	s.mappings.Modify(m.DeepCopy())
	return nil
}

func (s *statuses) accepted(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := apimeta.FindStatusCondition(s.entry[name].Status.Conditions, accessv1alpha1.ConditionAccepted)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

func (s *statuses) of(name string) iamv1alpha1.IAMIdentityMappingStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mapping[name].Status
}

func (s *statuses) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.writes)
}

// keeping follows the sources and keeps their status until the test ends.
func (s *statuses) keeping(t *testing.T, mode identity.Mode) *Sources {
	t.Helper()
	return s.keepingWith(t, identity.Options{Mode: mode})
}

func (s *statuses) keepingWith(t *testing.T, o identity.Options) *Sources {
	t.Helper()
	sources := following(t, func(c *SourcesConfig) {
		c.AccessEntries, c.IdentityMappings, c.Options = s.entries, s.mappings, o
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); sources.KeepStatus(ctx, s.apply) }()
	t.Cleanup(func() { cancel(); <-done })
	return sources
}

func TestAnEntrySaysWhetherItIsAccepted(t *testing.T) {
	s := newStatuses()
	s.addEntry("alice", alice, 1, func(e *accessv1alpha1.AccessEntry) {
		e.Status.Conditions = []metav1.Condition{{Type: accessv1alpha1.ConditionPoliciesApplied, Status: metav1.ConditionTrue, Reason: "Applied"}}
	})
	s.addEntry("again", alice, 1, nil)
	s.addEntry("wrong", "arn:aws:iam::111122223333:instance-profile/x", 1, nil)
	s.keeping(t, "")
	want := map[string]string{
		"alice": "True Mapped: " + alice + " is mapped by this entry",
		"again": "False NotUsed: spec.principalARN: ",
		"wrong": "False NotUsed: spec.principalARN: ",
	}
	for name, begin := range want {
		until(t, name+" says "+begin, func() bool { return strings.HasPrefix(s.accepted(name), begin) })
	}
	s.mu.Lock()
	others := len(s.entry["alice"].Status.Conditions)
	since := apimeta.FindStatusCondition(s.entry["alice"].Status.Conditions, accessv1alpha1.ConditionAccepted).LastTransitionTime
	s.mu.Unlock()
	if others != 2 || since.IsZero() {
		t.Errorf("alice has %d conditions, accepted since %s", others, since)
	}
	// It is put right by a change of its own, and by one of another.
	s.addEntry("wrong", nodes, 2, nil)
	until(t, "it is right", func() bool { return strings.HasPrefix(s.accepted("wrong"), "True") })
	s.entries.Delete(&accessv1alpha1.AccessEntry{ObjectMeta: metav1.ObjectMeta{Name: "alice"}})
	until(t, "its double is gone", func() bool { return strings.HasPrefix(s.accepted("again"), "True") })
	s.mu.Lock()
	generation := apimeta.FindStatusCondition(s.entry["wrong"].Status.Conditions, accessv1alpha1.ConditionAccepted).ObservedGeneration
	s.mu.Unlock()
	if generation != 2 {
		t.Errorf("the condition is about generation %d", generation)
	}
}

func TestAModeThatAsksNoEntriesIsSaid(t *testing.T) {
	s := newStatuses()
	s.addEntry("alice", alice, 1, nil)
	s.keeping(t, identity.ModeConfigMap)
	until(t, "it says so", func() bool {
		return strings.HasPrefix(s.accepted("alice"), "False ModeDoesNotAsk: the authentication mode is CONFIG_MAP")
	})
}

// A status is written once, and its own writing makes nobody put mappings together anew.
func TestAStatusIsWrittenOnce(t *testing.T) {
	s := newStatuses()
	s.addEntry("alice", alice, 1, nil)
	s.addMapping("nodes", nodes, 1)
	sources := s.keeping(t, "")
	until(t, "both are told", func() bool { return s.accepted("alice") != "" && s.of("nodes").CanonicalARN != "" })
	table := sources.Table()
	seen := func(name string) string {
		o, _, _ := sources.entries.GetStore().GetByKey(name)
		e, ok := o.(*accessv1alpha1.AccessEntry)
		if !ok {
			return ""
		}
		if c := apimeta.FindStatusCondition(e.Status.Conditions, "Noise"); c != nil {
			return c.Message
		}
		return ""
	}
	for _, noise := range []string{"one", "two", "three"} { // others write too
		s.mu.Lock()
		e := s.entry["alice"].DeepCopy()
		apimeta.SetStatusCondition(&e.Status.Conditions, metav1.Condition{Type: "Noise", Status: metav1.ConditionTrue, Reason: "R", Message: noise})
		s.entry["alice"] = e
		s.entries.Modify(e.DeepCopy())
		s.mu.Unlock()
		until(t, "it is seen", func() bool { return seen("alice") == noise })
	}
	s.addMapping("bob", strings.Replace(alice, "alice", "bob", 1), 1)
	until(t, "the next is told", func() bool { return s.of("bob").CanonicalARN != "" })
	if n := s.count(); n != 3 {
		t.Errorf("%d writes, want one of each: %v", n, s.writes)
	}
	if sources.Table() == table {
		t.Error("a new mapping made no new table")
	}
	before := sources.Table()
	s.mu.Lock()
	e := s.entry["alice"].DeepCopy()
	e.Status.Conditions = nil // somebody removes it
	s.entry["alice"] = e
	s.entries.Modify(e.DeepCopy())
	s.mu.Unlock()
	until(t, "it is there again", func() bool { return s.accepted("alice") != "" })
	if sources.Table() != before {
		t.Error("a status made a new table")
	}
}

func TestAMappingSaysWhoItMeans(t *testing.T) {
	s := newStatuses()
	s.addMapping("nodes", "arn:aws:iam::111122223333:role/Path/Nodes", 1)
	s.addMapping("wrong", "arn:aws:iam::111122223333:group/x", 1)
	sources := s.keeping(t, "")
	const canonical = "arn:aws:iam::111122223333:role/path/nodes"
	until(t, "its ARN is there", func() bool { return s.of("nodes").CanonicalARN == canonical })
	came := func(principal, id string) {
		a, err := arn.Parse(principal)
		if err != nil {
			t.Fatal(err)
		}
		sources.Learn(Decision{Source: identity.SourceIdentityMapping, Entry: "nodes", Identity: &tokenverify.Identity{Principal: identity.Principal{CanonicalARN: a, UserID: id}}})
	}
	came(alice, "AIDA0000000000000009") // not the principal that it names
	came("arn:aws:iam::111122223333:role/Nodes", "AROA0000000000000001")
	until(t, "the id is there", func() bool { return s.of("nodes").UserID != "" })
	if diff := cmp.Diff(iamv1alpha1.IAMIdentityMappingStatus{CanonicalARN: canonical, UserID: "AROA0000000000000001"}, s.of("nodes")); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	s.addMapping("nodes", alice, 2)
	until(t, "it names another", func() bool { return s.of("nodes").CanonicalARN == alice })
	if got := s.of("nodes"); got.UserID != "" || s.of("wrong") != (iamv1alpha1.IAMIdentityMappingStatus{}) {
		t.Errorf("status %+v, %+v", got, s.of("wrong"))
	}
}

// Every user that may read mappings reads their status, and nothing is told of the people of scrubbed accounts.
func TestNobodyOfAScrubbedAccountIsInAStatus(t *testing.T) {
	s := newStatuses()
	s.addMapping("nodes", nodes, 1)
	s.addMapping("hidden", "arn:aws:iam::444455556666:role/hidden", 1)
	sources := s.keepingWith(t, identity.Options{Scrubbed: []string{"444455556666"}})
	until(t, "they are there", func() bool { return s.of("nodes").CanonicalARN != "" && s.of("hidden").CanonicalARN != "" })
	for _, came := range []struct{ entry, role string }{{"hidden", "arn:aws:iam::444455556666:role/hidden"}, {"nodes", nodes}} {
		a, err := arn.Parse(came.role)
		if err != nil {
			t.Fatal(err)
		}
		sources.Learn(Decision{
			Source: identity.SourceIdentityMapping, Entry: came.entry,
			Identity: &tokenverify.Identity{Principal: identity.Principal{CanonicalARN: a, Account: a.Account, UserID: "AROA0000000000000001"}},
		})
	}
	until(t, "the id of the other is there", func() bool { return s.of("nodes").UserID != "" })
	if got := s.of("hidden").UserID; got != "" {
		t.Errorf("the status says %s", got)
	}
}

func TestAStatusThatCannotBeWrittenIsTriedAgain(t *testing.T) {
	s := newStatuses()
	s.err = errors.New("forbidden")
	s.addEntry("alice", alice, 1, nil)
	s.keeping(t, "")
	until(t, "it is tried", func() bool { return s.count() > 0 })
	s.mu.Lock()
	s.err = nil
	s.mu.Unlock()
	until(t, "it is written", func() bool { return s.accepted("alice") != "" })
}

func TestStatusIsAppliedToTheSubresource(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := map[string]any{}
		_ = json.NewDecoder(r.Body).Decode(&body)
		status, _ := json.Marshal(body["status"])
		metadata, _ := json.Marshal(body["metadata"])
		got = append(got, r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("Content-Type")+" "+string(metadata)+" "+string(status))
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"iamauthenticator.k8s.aws/v1alpha1","kind":"IAMIdentityMapping","metadata":{"name":"nodes"}}`))
	}))
	defer server.Close()
	apply, err := StatusOf(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	s := newStatuses()
	sources := following(t, func(c *SourcesConfig) { c.IdentityMappings = s.mappings })
	s.addMapping("nodes", nodes, 1)
	until(t, "it is known", func() bool { m := sources.made.Load(); return m != nil && len(m.mappings) == 1 })
	k := statusKeeper{sources: sources, apply: apply, applied: map[string]applied{}}
	for range 2 { // until it is seen it is not written again
		if err := k.all(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"PATCH /apis/iamauthenticator.k8s.aws/v1alpha1/iamidentitymappings/nodes/status?fieldManager=muster-authenticator&force=true " +
		`application/apply-patch+yaml {"name":"nodes","uid":"uid-m"} {"canonicalARN":"` + nodes + `"}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestLongProblemsFitIntoACondition(t *testing.T) {
	e := &accessv1alpha1.AccessEntry{Spec: accessv1alpha1.AccessEntrySpec{PrincipalARN: alice}}
	problem := identity.Problem{Field: "username", Saw: strings.Repeat("ä", 4000), Fix: "shorten it"}
	m := &made{problems: map[identity.Source]map[string][]identity.Problem{identity.SourceAccessEntry: {"": {problem}}}}
	c := accepted(e, identity.ModeAPI, m, time.Unix(0, 0))
	if c.Status != metav1.ConditionTrue || c.Reason != reasonInPart || len(c.Message) > 2100 || !strings.HasSuffix(c.Message, "ä…") {
		t.Errorf("condition %s %s of %d bytes", c.Status, c.Reason, len(c.Message))
	}
}
