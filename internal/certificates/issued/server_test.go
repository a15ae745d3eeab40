// SPDX-License-Identifier: Apache-2.0

package issued

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"muster.dev/muster/internal/certificates/facts"
	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policy"
)

const namespace = "kube-system"

// The reflector hands its errors to handlers of the process that take no two within a millisecond, and whose clock
// began outside of the bubbles that tests run in: the first error would sleep until the year 2026 comes.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil //nolint:reassign // it is for nothing else
	m.Run()
}

// server holds ConfigMaps as an API server does: client-go's own fake knows no resource versions. It fails on demand.
type server struct {
	t      *testing.T
	client *fake.Clientset

	mu       sync.Mutex
	revision int
	maps     map[string]*corev1.ConfigMap
	watches  []*watch.RaceFreeFakeWatcher
	events   []watch.Event
	writes   int
	// before each request, without the lock: an error is its answer.
	before func(verb string) error
	// after each write that was done: an error is what the client sees of it.
	after func(verb string) error
}

func newServer(t *testing.T, requests ...runtime.Object) *server {
	t.Helper()
	s := &server{t: t, client: fake.NewClientset(requests...), maps: map[string]*corev1.ConfigMap{}}
	s.client.PrependReactor("*", "configmaps", s.react)
	s.client.PrependWatchReactor("configmaps", s.watch)
	t.Cleanup(s.cut)
	return s
}

// fail sets what requests are answered; nil: what they should.
func (s *server) fail(before func(verb string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = before
}

// breaks answers all requests with the error and ends all watches, until it is called with nil.
func (s *server) breaks(err error) {
	s.fail(func(string) error { return err })
	if err != nil {
		s.cut()
	}
}

func (s *server) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.watches {
		w.Stop()
	}
	s.watches = nil
}

func (s *server) asks(verb string) error {
	s.mu.Lock()
	before := s.before
	s.mu.Unlock()
	if before == nil {
		return nil
	}
	return before(verb)
}

func (s *server) react(a clienttesting.Action) (bool, runtime.Object, error) {
	if err := s.asks(a.GetVerb()); err != nil {
		return true, nil, err
	}
	switch a := a.(type) {
	case clienttesting.CreateActionImpl:
		cm, err := s.put(a.Object.(*corev1.ConfigMap), true)
		return true, cm, s.answer("create", err)
	case clienttesting.UpdateActionImpl:
		cm, err := s.put(a.Object.(*corev1.ConfigMap), false)
		return true, cm, s.answer("update", err)
	case clienttesting.DeleteActionImpl:
		return true, nil, s.answer("delete", s.remove(a.Name, a.DeleteOptions.Preconditions))
	case clienttesting.GetActionImpl:
		cm := s.get(a.Name)
		if cm == nil {
			return true, nil, apierrors.NewNotFound(corev1.Resource("configmaps"), a.Name)
		}
		return true, cm, nil
	case clienttesting.ListActionImpl:
		return true, s.list(a.ListRestrictions.Labels), nil
	}
	return true, nil, fmt.Errorf("%s is not known to this server", a.GetVerb())
}

func (s *server) answer(verb string, err error) error {
	if err == nil && s.after != nil {
		return s.after(verb)
	}
	return err
}

func (s *server) put(cm *corev1.ConfigMap, create bool) (*corev1.ConfigMap, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	resource := corev1.Resource("configmaps")
	old := s.maps[cm.Name]
	switch {
	case create && old != nil:
		return nil, apierrors.NewAlreadyExists(resource, cm.Name)
	case !create && old == nil:
		return nil, apierrors.NewNotFound(resource, cm.Name)
	case !create && cm.ResourceVersion != "" && cm.ResourceVersion != old.ResourceVersion:
		return nil, apierrors.NewConflict(resource, cm.Name, fmt.Errorf("it is at %s", old.ResourceVersion))
	case !create && old.Immutable != nil:
		return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("ConfigMap").GroupKind(), cm.Name, nil)
	}
	s.revision++
	s.writes++
	cm = cm.DeepCopy()
	cm.ResourceVersion = strconv.Itoa(s.revision)
	kind := watch.Modified
	if create {
		cm.UID, kind = types.UID("uid "+cm.ResourceVersion), watch.Added
	}
	s.maps[cm.Name] = cm
	s.send(kind, cm)
	return cm.DeepCopy(), nil
}

func (s *server) remove(name string, p *metav1.Preconditions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.maps[name]
	switch {
	case old == nil:
		return apierrors.NewNotFound(corev1.Resource("configmaps"), name)
	case p != nil && (p.UID != nil && *p.UID != old.UID || p.ResourceVersion != nil && *p.ResourceVersion != old.ResourceVersion):
		return apierrors.NewConflict(corev1.Resource("configmaps"), name, fmt.Errorf("it is at %s", old.ResourceVersion))
	}
	s.revision++
	s.writes++
	delete(s.maps, name)
	old = old.DeepCopy()
	old.ResourceVersion = strconv.Itoa(s.revision)
	s.send(watch.Deleted, old)
	return nil
}

func (s *server) send(kind watch.EventType, cm *corev1.ConfigMap) {
	if cm.Labels[registerLabel] != "true" {
		return
	}
	s.events = append(s.events, watch.Event{Type: kind, Object: cm.DeepCopy()})
	for _, w := range s.watches {
		w.Action(kind, cm.DeepCopy())
	}
}

func (s *server) get(name string) *corev1.ConfigMap {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.maps[name].DeepCopy()
}

func (s *server) list(selected labels.Selector) *corev1.ConfigMapList {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := &corev1.ConfigMapList{}
	list.ResourceVersion = strconv.Itoa(s.revision)
	for _, cm := range s.maps {
		if selected.Matches(labels.Set(cm.Labels)) {
			list.Items = append(list.Items, *cm.DeepCopy())
		}
	}
	return list
}

func (s *server) watch(a clienttesting.Action) (bool, watch.Interface, error) {
	if err := s.asks("watch"); err != nil {
		return true, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := watch.NewRaceFreeFake()
	for _, e := range s.events {
		if newer(e.Object.(*corev1.ConfigMap).ResourceVersion, a.(clienttesting.WatchActionImpl).WatchRestrictions.ResourceVersion) {
			w.Action(e.Type, e.Object.DeepCopyObject())
		}
	}
	s.watches = append(s.watches, w)
	return true, w, nil
}

// written is how many writes were done.
func (s *server) written() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// edit changes a ConfigMap as a person does.
func (s *server) edit(name string, change func(*corev1.ConfigMap)) {
	s.t.Helper()
	cm := s.get(name)
	if cm == nil {
		s.t.Fatalf("there is no %s", name)
	}
	change(cm)
	if _, err := s.put(cm, false); err != nil {
		s.t.Fatal(err)
	}
}

// stored counts how often each UID and each key is in the ConfigMaps.
func (s *server) stored() (uids map[string]int, keys map[short]int) {
	s.t.Helper()
	uids, keys = map[string]int{}, map[short]int{}
	for _, cm := range s.list(everything).Items {
		if cm.Labels[registerLabel] != "true" {
			continue
		}
		c, _ := read(&cm)
		for _, e := range c.entries {
			uids[e.UID]++
		}
		for _, g := range c.groups {
			for _, k := range g.keys {
				keys[k]++
			}
		}
	}
	return uids, keys
}

// running is a Register that runs until the test or stop ends it.
type running struct {
	*Register
	log     *logText
	changes []facts.Change
	mu      sync.Mutex
	stop    func()
}

// logText is what a register logs while it runs.
type logText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logText) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func config(s *server) Config {
	return Config{
		Client: s.client, Namespace: namespace, Logger: slog.New(slog.DiscardHandler),
		Signers:   []string{pki.SignerKubeletClient, pki.SignerKubeletServing},
		MachineOf: machineOfToken, MachineOfNode: unknownMachine,
	}
}

func unknownMachine(string) policy.Fact[policy.Machine] {
	return policy.DontKnow[policy.Machine]("test", "nobody knows")
}

func machineOfToken(csr *certificatesv1.CertificateSigningRequest) string {
	for _, g := range csr.Spec.Groups {
		if machine, ok := strings.CutPrefix(g, "system:bootstrappers:muster:"); ok {
			return machine
		}
	}
	return ""
}

// start runs a Register in the bubble of a test.
func start(t *testing.T, s *server, changes ...func(*Config)) *running {
	t.Helper()
	run := &running{log: &logText{}}
	c := config(s)
	c.Logger = slog.New(slog.NewTextHandler(run.log, nil))
	c.OnChange = func(change facts.Change) {
		run.mu.Lock()
		defer run.mu.Unlock()
		run.changes = append(run.changes, change)
	}
	for _, change := range changes {
		change(&c)
	}
	var err error
	if run.Register, err = New(c); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); run.Run(ctx) }()
	run.stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(run.stop)
	synctest.Wait()
	return run
}

// alls counts how often it was told that everything may have changed since the last call.
func (r *running) alls() int {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, c := range r.changes {
		if c.All {
			n++
		}
	}
	r.changes = nil
	return n
}

// elapse lets time of a bubble go by.
func elapse(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in a synctest bubble it takes no time
	synctest.Wait()
}

// entry number n, of a client certificate for a week.
func entry(n int, node, machine string) Entry {
	e := Entry{
		UID: fmt.Sprintf("00000000-0000-0000-0000-%012d", n), CSR: fmt.Sprintf("csr-%05d", n), Signer: pki.SignerKubeletClient,
		Node: node, Machine: machine, Serial: fmt.Sprintf("%032x", n), Issuer: "kubernetes",
		NotBefore: time.Now().UTC().Truncate(time.Second), NotAfter: time.Now().UTC().Add(168 * time.Hour).Truncate(time.Second),
	}
	e.Key = key(n)
	return e
}

func key(n int) (k pki.Fingerprint) {
	copy(k[:], fmt.Sprintf("%d key", n))
	return k
}

var everything = labels.Everything()
