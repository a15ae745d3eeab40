// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// store holds requests as the API server does: with versions that conflict, creation times, UIDs, and watches of any
// length.
type store struct {
	mu       sync.Mutex
	requests map[string]*certificatesv1.CertificateSigningRequest
	version  int
	watchers map[*watcher]bool
	hushed   bool
	late     int // updates of a version that was not the last
	untold   []watch.Event
}

func newStore() (*fake.Clientset, *store) {
	s := &store{requests: map[string]*certificatesv1.CertificateSigningRequest{}, watchers: map[*watcher]bool{}}
	client := &fake.Clientset{}
	for verb, react := range map[string]func(clienttesting.Action) (runtime.Object, error){
		"create": func(a clienttesting.Action) (runtime.Object, error) {
			action, _ := a.(clienttesting.CreateAction)
			csr, _ := action.GetObject().(*certificatesv1.CertificateSigningRequest)
			return s.create(csr.DeepCopy()), nil
		},
		"update": func(a clienttesting.Action) (runtime.Object, error) {
			action, _ := a.(clienttesting.UpdateAction)
			csr, _ := action.GetObject().(*certificatesv1.CertificateSigningRequest)
			return s.update(csr.DeepCopy(), a.GetSubresource())
		},
		"delete": func(a clienttesting.Action) (runtime.Object, error) {
			action, _ := a.(clienttesting.DeleteActionImpl)
			return nil, s.remove(action.Name, action.DeleteOptions.Preconditions)
		},
		"get": func(a clienttesting.Action) (runtime.Object, error) {
			action, _ := a.(clienttesting.GetAction)
			s.mu.Lock()
			defer s.mu.Unlock()
			csr, err := s.get(action.GetName())
			return csr.DeepCopy(), err
		},
		"list": func(clienttesting.Action) (runtime.Object, error) { return s.list(), nil },
	} {
		client.AddReactor(verb, "certificatesigningrequests", func(a clienttesting.Action) (bool, runtime.Object, error) {
			o, err := react(a)
			return true, o, err
		})
	}
	client.AddWatchReactor("certificatesigningrequests", func(a clienttesting.Action) (bool, watch.Interface, error) {
		from := ""
		if w, ok := a.(clienttesting.WatchActionImpl); ok {
			from = w.ListOptions.ResourceVersion
		}
		return true, s.watch(from), nil
	})
	return client, s
}

func (s *store) get(name string) (*certificatesv1.CertificateSigningRequest, error) {
	csr := s.requests[name]
	if csr == nil {
		return nil, apierrors.NewNotFound(certificatesv1.Resource("certificatesigningrequests"), name)
	}
	return csr, nil
}

// put stores a new version and tells the watchers.
func (s *store) put(kind watch.EventType, csr *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
	s.version++
	csr.ResourceVersion = strconv.Itoa(s.version)
	s.requests[csr.Name] = csr
	if kind == watch.Deleted {
		delete(s.requests, csr.Name)
	}
	s.untold = append(s.untold, watch.Event{Type: kind, Object: csr.DeepCopy()})
	s.tell()
	return csr.DeepCopy()
}

// refused is how many updates came too late.
func (s *store) refused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.late
}

func (s *store) tell() {
	if s.hushed {
		return
	}
	for _, e := range s.untold {
		for w := range s.watchers {
			w.send(watch.Event{Type: e.Type, Object: e.Object.DeepCopyObject()})
		}
	}
	s.untold = nil
}

// hush keeps what happens from the watchers, until it is taken back.
func (s *store) hush(hushed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hushed = hushed
	s.tell()
}

func (s *store) create(csr *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.add(csr)
}

// replace deletes a request and makes another one of its name.
func (s *store) replace(csr *certificatesv1.CertificateSigningRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(watch.Deleted, s.requests[csr.Name].DeepCopy())
	s.add(csr)
}

func (s *store) add(csr *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
	csr.UID = types.UID(fmt.Sprintf("uid-%d-of-%s", s.version, csr.Name))
	if csr.CreationTimestamp.IsZero() {
		csr.CreationTimestamp = metav1.NewTime(time.Now().Truncate(time.Second))
	}
	return s.put(watch.Added, csr)
}

func (s *store) update(csr *certificatesv1.CertificateSigningRequest, subresource string) (*certificatesv1.CertificateSigningRequest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, err := s.get(csr.Name)
	switch {
	case err != nil:
		return nil, err
	case csr.ResourceVersion != old.ResourceVersion || csr.UID != old.UID:
		s.late++
		return nil, apierrors.NewConflict(certificatesv1.Resource("certificatesigningrequests"), csr.Name, nil)
	case len(old.Status.Certificate) > 0 && string(old.Status.Certificate) != string(csr.Status.Certificate):
		return nil, apierrors.NewBadRequest("the certificate is written once")
	}
	csr.Spec = old.Spec // whatever was sent: upstream's pkg/registry/certificates/certificates/strategy.go
	if csr.ManagedFields == nil {
		csr.ManagedFields = old.ManagedFields
	}
	return s.put(watch.Modified, csr), nil
}

func (s *store) remove(name string, p *metav1.Preconditions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, err := s.get(name)
	if err != nil {
		return err
	}
	if p != nil && (p.UID != nil && *p.UID != old.UID || p.ResourceVersion != nil && *p.ResourceVersion != old.ResourceVersion) {
		return apierrors.NewConflict(certificatesv1.Resource("certificatesigningrequests"), name, nil)
	}
	s.put(watch.Deleted, old.DeepCopy())
	return nil
}

func (s *store) list() *certificatesv1.CertificateSigningRequestList {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := &certificatesv1.CertificateSigningRequestList{}
	list.ResourceVersion = strconv.Itoa(s.version)
	for _, name := range slices.Sorted(maps.Keys(s.requests)) {
		list.Items = append(list.Items, *s.requests[name].DeepCopy())
	}
	return list
}

func (s *store) watch(from string) watch.Interface {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &watcher{out: make(chan watch.Event), some: make(chan struct{}, 1), stop: make(chan struct{})}
	after, _ := strconv.Atoi(from)
	for _, name := range slices.Sorted(maps.Keys(s.requests)) { // requests that came between the list and the watch
		if version, _ := strconv.Atoi(s.requests[name].ResourceVersion); version > after {
			w.send(watch.Event{Type: watch.Added, Object: s.requests[name].DeepCopy()})
		}
	}
	s.watchers[w] = true
	w.ended = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, w)
	}
	go w.pump()
	return w
}

// watcher never blocks a writer.
type watcher struct {
	out   chan watch.Event
	some  chan struct{}
	stop  chan struct{}
	once  sync.Once
	ended func()

	mu      sync.Mutex
	waiting []watch.Event
}

func (w *watcher) ResultChan() <-chan watch.Event { return w.out }

func (w *watcher) Stop() { w.once.Do(func() { close(w.stop); w.ended() }) }

func (w *watcher) send(e watch.Event) {
	w.mu.Lock()
	w.waiting = append(w.waiting, e)
	w.mu.Unlock()
	select {
	case w.some <- struct{}{}:
	default:
	}
}

func (w *watcher) pump() {
	defer close(w.out)
	for {
		w.mu.Lock()
		now := w.waiting
		w.waiting = nil
		w.mu.Unlock()
		for _, e := range now {
			select {
			case w.out <- e:
			case <-w.stop:
				return
			}
		}
		select {
		case <-w.some:
		case <-w.stop:
			return
		}
	}
}
