// SPDX-License-Identifier: Apache-2.0

package podwatch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/internal/platform/lru"
)

const (
	// patience is how long an interrupted watch is waited for.
	patience = 2 * time.Second
	// askTimeout bounds a question to the API server, and answerHolds is how long the answer is remembered.
	askTimeout, answerHolds = 2 * time.Second, time.Second
	// young is how old a token may be whose pod the watch may not have heard of yet.
	young = 30 * time.Second
	// asksPerSecond and asksAtOnce bound the questions to the API server, so that a flood of tokens is none of
	// requests.
	asksPerSecond, asksAtOnce = 20, 40
	maxAnswers                = 4096
)

// Exists is nil if a pod and its service account are there, or the service account alone where Pod is empty; otherwise
// the error wraps ErrNoPod or ErrNotReady, or says why the API server does not tell. The moment at which the token was
// issued says whether the pod may be newer than what the watch has heard: the API server is asked about such a one, and
// about all while the watch is interrupted for longer than two seconds.
func (w *Watch) Exists(s Subject, issued time.Time) error {
	known := w.known(s)
	if errors.Is(known, ErrNotReady) {
		return known
	}
	now := w.open.now()
	interrupted := w.open.interrupted(now)
	if !interrupted && (known == nil || now.Sub(issued) > young) {
		return known
	}
	if answered, ok := w.direct.remembered(s, now); ok {
		return answered.err
	}
	if !w.direct.limiter.AllowN(now, 1) {
		return known
	}
	err := w.direct.ask(s)
	if err != nil && !errors.Is(err, ErrNoPod) && !reached(err) {
		err = known // nothing is deleted while the API server is away
	}
	w.direct.remember(s, answer{err, now})
	return err
}

// known is what the watch says.
func (w *Watch) known(s Subject) error {
	if s.Pod != "" {
		_, err := w.Find(s)
		return err
	}
	if !w.HasSynced() {
		return ErrNotReady
	}
	return w.account(s)
}

// direct asks the API server itself.
type direct struct {
	client  kubernetes.Interface
	limiter *rate.Limiter
	*answers
}

type answer struct {
	err error
	at  time.Time
}

type answers struct {
	mu  sync.Mutex
	all *lru.Map[Subject, answer]
}

func newDirect(client kubernetes.Interface) direct {
	return direct{client, rate.NewLimiter(asksPerSecond, asksAtOnce), &answers{all: lru.New[Subject, answer](maxAnswers)}}
}

func (a *answers) remembered(s Subject, now time.Time) (answer, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	got, ok := a.all.Get(s)
	return got, ok && now.Sub(got.at) < answerHolds
}

func (a *answers) remember(s Subject, got answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all.Put(s, got)
}

func (d direct) ask(s Subject) error {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	account, err := d.client.CoreV1().ServiceAccounts(s.Namespace).Get(ctx, s.ServiceAccount, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && s.ServiceAccountUID != "" && string(account.UID) != s.ServiceAccountUID:
		return fmt.Errorf("%w: the API server has no service account %s/%s with the UID %s", ErrNoPod, s.Namespace, s.ServiceAccount, s.ServiceAccountUID)
	case err != nil || s.Pod == "":
		return err
	}
	pod, err := d.client.CoreV1().Pods(s.Namespace).Get(ctx, s.Pod, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && (string(pod.UID) != s.PodUID || pod.Spec.ServiceAccountName != s.ServiceAccount) {
		return fmt.Errorf("%w: the API server has no pod %s/%s with the UID %s", ErrNoPod, s.Namespace, s.Pod, s.PodUID)
	}
	return err
}

// reached reports whether an error is an answer of the API server.
func reached(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && status.ErrStatus.Code != http.StatusServiceUnavailable
}

// open counts the watches that are open: of pods, and of service accounts.
type open struct {
	now func() time.Time

	mu     sync.Mutex
	opened int
	since  time.Time // when one ended last
}

// watched is how many watches there are when nothing is interrupted.
const watched = 2

func (o *open) interrupted(now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.opened < watched && now.Sub(o.since) > patience
}

// count counts a watch until it is stopped, as the informer does with each when it ends.
func (o *open) count(w watch.Interface, err error) (watch.Interface, error) {
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.opened++
	return &counted{Interface: w, end: sync.OnceFunc(func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.opened--
		o.since = o.now()
	})}, nil
}

type counted struct {
	watch.Interface
	end func()
}

// Stop ends the watch.
func (c *counted) Stop() {
	c.end()
	c.Interface.Stop()
}
