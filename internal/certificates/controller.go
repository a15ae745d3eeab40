// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesinformers "k8s.io/client-go/informers/certificates/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"muster.dev/muster/internal/facts"
	"muster.dev/muster/internal/pki"
	"muster.dev/muster/internal/policy"
	"muster.dev/muster/internal/trace"
)

// Controller approves and signs.
type Controller struct {
	config   Config
	informer cache.SharedIndexInformer
	queue    workqueue.TypedDelayingInterface[item]
	retries  workqueue.TypedRateLimiter[item]
	waits    workqueue.TypedRateLimiter[item]
	ledger   *ledger
	metrics  *metrics
}

// New makes a Controller. Nothing happens before Run.
func New(config Config) (*Controller, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	c := &Controller{
		config:   config,
		informer: certificatesinformers.NewCertificateSigningRequestInformer(config.Client, 0, cache.Indexers{}),
		queue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[item]{
			Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[item]{Queue: newFairQueue()}),
		}),
		retries: workqueue.NewTypedItemExponentialFailureRateLimiter[item](config.Retry.First, config.Retry.Most),
		waits:   workqueue.NewTypedItemExponentialFailureRateLimiter[item](config.Wait.First, config.Wait.Most),
		ledger:  newLedger(),
	}
	var err error
	if c.metrics, err = newMetrics(config.Metrics, c.queue.Len, c.ledger.waiting); err != nil {
		return nil, err
	}
	if err := c.informer.SetTransform(trim); err != nil {
		return nil, fmt.Errorf("preparing the watch of certificate signing requests: %w", err)
	}
	if _, err := c.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: c.enqueue, UpdateFunc: func(_, o any) { c.enqueue(o) }, DeleteFunc: c.remove,
	}); err != nil {
		return nil, fmt.Errorf("preparing the watch of certificate signing requests: %w", err)
	}
	return c, nil
}

// trim drops what nobody here reads. The API server keeps the managed fields of an object that comes back without.
func trim(o any) (any, error) {
	if csr, ok := o.(*certificatesv1.CertificateSigningRequest); ok {
		csr.ManagedFields = nil
	}
	return o, nil
}

// Ready returns nil once requests and machines have been read.
func (c *Controller) Ready() error {
	switch {
	case !c.informer.HasSynced():
		return errors.New("certificate signing requests have not been read yet")
	case !c.config.Inventory.HasSynced():
		return errors.New("machines have not been read yet")
	}
	return nil
}

// Changed wakes up the requests that a change in the inventory may matter to. It is the inventory's to call.
func (c *Controller) Changed(change facts.Change) {
	for i := range c.ledger.concerned(change) {
		c.waits.Forget(i)
		c.queue.Add(i)
	}
}

// Run works until ctx is done, then lets passes that are under way end.
func (c *Controller) Run(ctx context.Context) {
	work, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	var group sync.WaitGroup
	group.Go(func() { c.informer.RunWithContext(ctx) })
	if cache.WaitForCacheSync(ctx.Done(), c.informer.HasSynced) {
		for range c.config.Workers {
			group.Go(func() {
				for c.next(work) {
				}
			})
		}
	}
	<-ctx.Done()
	c.queue.ShutDown()
	defer time.AfterFunc(c.config.Grace, abandon).Stop()
	group.Wait()
}

func (c *Controller) enqueue(o any) {
	csr, ok := o.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return
	}
	if _, ours := pki.ProfileFor(csr.Spec.SignerName); !ours {
		return
	}
	i := itemOf(csr)
	c.ledger.see(i, c.config.Now())
	c.queue.Add(i)
}

func (c *Controller) remove(o any) {
	if d, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = d.Obj
	}
	if csr, ok := o.(*certificatesv1.CertificateSigningRequest); ok {
		i := itemOf(csr)
		c.ledger.remove(i, csr.UID)
		c.retries.Forget(i)
		c.waits.Forget(i)
	}
}

func itemOf(csr *certificatesv1.CertificateSigningRequest) item {
	return item{csr.Name, csr.Spec.Username}
}

// next takes one item and decides when it comes again.
func (c *Controller) next(ctx context.Context) bool {
	i, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(i)
	again, err := c.guarded(ctx, i)
	switch {
	case err != nil:
		c.config.Logger.Error("certificate request not handled, trying again", "csr", i.name, "requester", i.requester, "error", err)
		c.queue.AddAfter(i, c.retries.When(i))
	case again:
		c.retries.Forget(i)
		c.queue.AddAfter(i, c.waits.When(i))
	default:
		c.retries.Forget(i)
		c.waits.Forget(i)
	}
	return true
}

// guarded keeps one bad request from ending the program or holding a worker.
func (c *Controller) guarded(ctx context.Context, i item) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("handling the request panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return c.handle(ctx, i)
}

// judge gathers the facts that the policy asks for and decides.
func (c *Controller) judge(ctx context.Context, i item, r policy.Request) decision {
	q := policy.Ask(r)
	c.ledger.expect(i, q)
	var f policy.Facts
	if q.Machine != "" {
		f.TokenMachine = c.config.Inventory.Machine(q.Machine)
	}
	if q.Node != "" {
		f.NodeMachine = c.config.Inventory.MachineOfNode(q.Node)
	}
	f.Owners = make(map[string]policy.Fact[[]string], len(q.Names))
	for _, n := range q.Names {
		f.Owners[n] = c.config.Inventory.Owners(n)
	}
	// A review costs a request: it is asked for only if everything else is in order.
	if q.Access != nil {
		f.Access = policy.Know(true, "nobody yet", c.config.Now())
		if policy.Decide(c.config.Policy, r, f, c.config.Now()).Verdict == trace.Approve {
			f.Access = c.config.Access.Review(ctx, *q.Access)
		} else {
			f.Access = policy.DontKnow[bool]("SubjectAccessReview", "not asked, because of the other rules")
		}
	}
	return decision{policy.Decide(c.config.Policy, r, f, c.config.Now()), r}
}
