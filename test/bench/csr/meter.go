// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/test/plane"
)

// meter makes requests, sees them issued, and reads what that cost.
type meter struct {
	plane      *plane.Plane
	controller *plane.Process
	client     *kubernetes.Clientset
}

func newMeter(p *plane.Plane, controller *plane.Process) (*meter, error) {
	config, err := p.RESTConfig("load", "system:masters")
	if err != nil {
		return nil, err
	}
	config.ContentType = runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return &meter{plane: p, controller: controller, client: client}, nil
}

// patience is how long one load may take beyond what the slowest system needs for it: 10 a second.
const patience = 60 * time.Second

// settling is how long a system may write down what it did after the last certificate; that counts as its cost, too.
const settling = 2 * time.Second

// measure puts a load on and returns when everything is issued.
func (m *meter) measure(ctx context.Context, l load, requests []request, concurrency int) (result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience+time.Duration(l.size)*150*time.Millisecond, errors.New("it took too long"))
	defer cancel()
	if err := m.controller.ForgetPeak(); err != nil {
		return result{}, err
	}
	before, err := m.read(ctx)
	if err != nil {
		return result{}, err
	}
	begin, err := m.now()
	if err != nil {
		return result{}, err
	}
	created, issued, err := m.run(ctx, l, requests, concurrency)
	if err != nil {
		return result{}, err
	}
	end, err := m.now()
	if err != nil {
		return result{}, err
	}
	select {
	case <-time.After(settling):
	case <-ctx.Done():
		return result{}, context.Cause(ctx)
	}
	after, err := m.read(ctx)
	if err != nil {
		return result{}, err
	}
	r := after.since(before, l.size)
	r.Load, r.Kind, r.Size = l.String(), l.kind, l.size
	spent := end.since(begin)
	r.Idle, r.Others = 100*spent.idle, 100*spent.others
	latencies := make([]float64, len(requests))
	first, last := created[0], issued[0]
	for i := range requests {
		latencies[i] = float64(issued[i].Sub(created[i])) / float64(time.Millisecond)
		first, last = earlier(first, created[i]), later(last, issued[i])
	}
	slices.Sort(latencies)
	r.P50, r.P99, r.Max = percentile(latencies, 50), percentile(latencies, 99), latencies[len(latencies)-1]
	r.Seconds = last.Sub(first).Seconds()
	r.Rate = float64(l.size) / r.Seconds
	return r, nil
}

// run puts the load on and returns when each request was made and when its certificate was seen.
func (m *meter) run(ctx context.Context, l load, requests []request, concurrency int) (created, issued []time.Time, err error) {
	index := make(map[string]int, len(requests))
	for i, r := range requests {
		index[r.csr.Name] = i
	}
	csrs := m.client.CertificatesV1().CertificateSigningRequests()
	list, err := csrs.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, nil, fmt.Errorf("listing requests: %w", err)
	}
	making, abandon := context.WithCancel(ctx)
	defer abandon()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	created, issued = make([]time.Time, len(requests)), make([]time.Time, len(requests))
	left := len(requests)
	seen := make(chan error, 1)
	go func() {
		var refused error
		err := follow(watching, csrs, list.ResourceVersion, func(_ watch.EventType, csr *certificatesv1.CertificateSigningRequest) {
			i, ours := index[csr.Name]
			switch {
			case !ours:
			case len(csr.Status.Certificate) > 0 && issued[i].IsZero():
				issued[i] = time.Now()
				left--
			case refusal(csr) != "":
				refused = fmt.Errorf("%s was refused: %s", csr.Name, refusal(csr))
			}
			if left == 0 || refused != nil {
				stop()
			}
		})
		switch {
		case left == 0:
			seen <- nil
		case refused != nil:
			seen <- refused
		default:
			seen <- fmt.Errorf("%d of %d certificates were not issued: %w", left, len(requests), err)
		}
	}()
	made := make(chan error, 1)
	go func() {
		made <- m.create(making, l, requests, concurrency, func(i int) { created[i] = time.Now() })
	}()
	select {
	case err = <-seen:
	case <-m.controller.Ended():
		err = errors.New("it has ended")
	}
	if err != nil {
		abandon()
		err = errors.Join(err, <-made)
		return nil, nil, errors.Join(err, context.Cause(ctx), errors.New(m.controller.Name+" printed at last:\n"+m.controller.Tail()))
	}
	return created, issued, <-made // which also orders what was written there before what is read now
}

// refusal says why a request will not be issued, "" if it may be.
func refusal(csr *certificatesv1.CertificateSigningRequest) string {
	for _, c := range csr.Status.Conditions {
		if c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed {
			return string(c.Type) + ": " + c.Message
		}
	}
	return ""
}

// create makes all requests: as many at once as allowed, or one after the other at the load's rate, however long each
// takes.
func (m *meter) create(ctx context.Context, l load, requests []request, concurrency int, started func(int)) error {
	var group sync.WaitGroup
	var once sync.Once
	var failed error
	one := func(i int) {
		started(i)
		if err := m.post(ctx, requests[i]); err != nil {
			once.Do(func() { failed = fmt.Errorf("creating %s: %w", requests[i].csr.Name, err) })
		}
	}
	if l.rate > 0 {
		begin := time.Now()
		for i := range requests {
			select {
			case <-time.After(time.Until(begin.Add(time.Duration(float64(i) / l.rate * float64(time.Second))))):
			case <-ctx.Done():
			}
			group.Go(func() { one(i) })
		}
	} else {
		next := make(chan int)
		for range concurrency {
			group.Go(func() {
				for i := range next {
					one(i)
				}
			})
		}
		for i := range requests {
			next <- i
		}
		close(next)
	}
	group.Wait()
	return failed
}

// post creates a request as its requester: the API server then treats and records it as if that one had asked.
func (m *meter) post(ctx context.Context, r request) error {
	return m.client.CertificatesV1().RESTClient().Post().Resource("certificatesigningrequests").
		SetHeader("Impersonate-User", r.user).SetHeader("Impersonate-Group", r.groups...).
		Body(r.csr).Do(ctx).Error()
}

// clear deletes all requests and lets the system notice.
func (m *meter) clear(ctx context.Context) error {
	csrs := m.client.CertificatesV1().CertificateSigningRequests()
	if err := csrs.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("deleting requests: %w", err)
	}
	list, err := csrs.List(ctx, metav1.ListOptions{Limit: 1})
	if err == nil && len(list.Items) > 0 {
		err = errors.New("some are left")
	}
	if err != nil {
		return fmt.Errorf("deleting requests: %w", err)
	}
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// percentile of sorted values, by nearest rank.
func percentile(sorted []float64, p float64) float64 {
	return sorted[max(0, int(math.Ceil(p/100*float64(len(sorted))))-1)]
}
