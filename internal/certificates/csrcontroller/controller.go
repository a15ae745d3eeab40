// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"muster.dev/muster/internal/certificates/facts"
	"muster.dev/muster/internal/platform/leaderlease"
	"muster.dev/muster/internal/platform/watchretry"
)

// Controller approves and signs.
type Controller struct {
	config   Config
	started  time.Time
	informer cache.SharedIndexInformer
	handled  cache.ResourceEventHandlerRegistration // later than the informer: ledger and lineages know what was seen
	queue    *queue
	retries  workqueue.TypedRateLimiter[item]
	waits    workqueue.TypedRateLimiter[item]
	ledger   *ledger
	lineages *lineages
	claims   *claims
	budget   *budget
	crew     *crew
	metrics  *metrics
	leading  atomic.Bool
	led      atomic.Bool         // it has led, and never will again
	tenure   *leaderlease.Tenure // without an end if there is no election
}

// New makes a Controller. Nothing happens before Watch.
func New(config Config) (*Controller, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	c := &Controller{
		config:   config,
		started:  config.Now().Truncate(time.Second), // creation times are whole seconds
		informer: cache.NewSharedIndexInformer(requests(config.Client), &certificatesv1.CertificateSigningRequest{}, 0, cache.Indexers{}),
		retries:  workqueue.NewTypedItemExponentialFailureRateLimiter[item](config.Retry.First, config.Retry.Most),
		waits:    workqueue.NewTypedItemExponentialFailureRateLimiter[item](config.Wait.First, config.Wait.Most),
		ledger:   newLedger(),
		lineages: newLineages(config.Keep),
		claims:   newClaims(),
		budget:   newBudget(),
		crew:     newCrew(config.Workers, config.MostWorkers),
		tenure:   leaderlease.NewTenure(config.Now, config.Logger),
	}
	c.queue = newQueue(c.crew.shares, len(config.Signers))
	var err error
	if c.metrics, err = newMetrics(c); err != nil {
		return nil, err
	}
	if err := c.informer.SetTransform(c.hold); err != nil {
		return nil, fmt.Errorf("preparing the watch of certificate signing requests: %w", err)
	}
	if c.handled, err = c.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: c.see, UpdateFunc: func(_, o any) { c.see(o) }, DeleteFunc: c.remove,
	}); err != nil {
		return nil, fmt.Errorf("preparing the watch of certificate signing requests: %w", err)
	}
	return c, nil
}

// requests lists and watches them.
func requests(client kubernetes.Interface) cache.ListerWatcher {
	all := client.CertificatesV1().CertificateSigningRequests()
	return watchretry.New(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return all.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return all.Watch(ctx, o) },
	}, client))
}

// Ready returns nil once everything has been read that this replica needs: the register only when it leads. A replica
// that led before, or whose lease has lapsed, is not ready.
func (c *Controller) Ready() error {
	switch {
	case c.led.Load():
		return errors.New("this replica led, and ends")
	case c.leading.Load() && c.tenure.Check() != nil:
		return leaderlease.ErrLapsed
	case !c.handled.HasSynced():
		return errors.New("certificate signing requests have not been read yet")
	case !c.config.Inventory.HasSynced():
		return errors.New("machines have not been read yet")
	case !c.config.Nodes.HasSynced():
		return errors.New("nodes have not been read yet")
	case c.leading.Load() && !c.config.Register.HasSynced():
		return errors.New("the register of issued certificates has not been read yet")
	}
	return nil
}

// Changed wakes up the requests that a change may matter to. It is for all sources of facts to call: inventory, nodes,
// register.
func (c *Controller) Changed(change facts.Change) {
	for i := range c.ledger.affectedBy(change) {
		c.waits.Forget(i)
		c.wake(i)
	}
}

// Run watches and leads until ctx is done: for a replica that has no other.
func (c *Controller) Run(ctx context.Context) {
	var group sync.WaitGroup
	group.Go(func() { c.Watch(ctx) })
	c.Lead(ctx)
	group.Wait()
}

// Watch keeps the cache of requests up to date until ctx is done, so that a replica which stands by can lead at once.
// It decides nothing.
func (c *Controller) Watch(ctx context.Context) { c.informer.RunWithContext(ctx) }

// ErrLost is the cause of the end of a leader's context when its lease was lost: another replica leads already.
var ErrLost = leaderlease.ErrLost

// Lead decides until ctx is done, and once in the life of a Controller. Passes that are in hand end before it returns,
// and issued certificates are on record, so that the lease can be given up after that; only if it was lost are they
// abandoned at once.
func (c *Controller) Lead(ctx context.Context) {
	work, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	recording, recorded := context.WithCancel(context.WithoutCancel(ctx))
	var register, workers sync.WaitGroup
	c.leading.Store(true) // before the register reads what was issued, so that nothing is issued unseen in between
	defer func() { c.led.Store(true); c.leading.Store(false) }()
	register.Go(func() { c.config.Register.Run(recording) })
	// Not the informer: it has synced before its handlers have seen what it holds, and an old request is known to be
	// superseded only after the newer ones were seen.
	if cache.WaitFor(ctx, "", c.handled.HasSyncedChecker()) {
		c.awaitFacts(ctx)
		c.takeOver()
		c.crew.start(func() { workers.Go(func() { c.work(ctx, work) }) })
		workers.Go(func() { wait.UntilWithContext(ctx, func(context.Context) { c.tick() }, tick) })
	}
	<-ctx.Done()
	c.queue.close()
	if errors.Is(context.Cause(ctx), ErrLost) {
		abandon()
	}
	stop := time.AfterFunc(c.config.Grace, abandon)
	defer stop.Stop()
	workers.Wait()
	recorded()
	register.Wait()
}

// tick does what nothing that happens would cause.
func (c *Controller) tick() {
	if c.tenure.Check() == nil {
		c.recruit()
		c.tellLater()
	}
}

// factsWait is how long the facts get to arrive before the first requests are told that they wait for them.
const factsWait = 5 * time.Second

func (c *Controller) awaitFacts(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, factsWait)
	defer cancel()
	cache.WaitForCacheSync(ctx.Done(), c.config.Register.HasSynced, c.config.Nodes.HasSynced, c.config.Inventory.HasSynced)
}

// takeOver queues what was seen while another replica led, or nobody.
func (c *Controller) takeOver() {
	all := c.informer.GetStore().List()
	if !c.signs() && !c.observes() {
		for _, o := range all {
			if h, ok := o.(*held); ok {
				c.takeOverClaim(h)
			}
		}
	}
	for _, o := range all {
		if h, ok := o.(*held); ok && c.concerns(h) {
			c.queue.add(h.item)
		}
	}
}

// concerns reports whether there may be something to do about a request.
func (c *Controller) concerns(h *held) bool {
	return h.csr.Load() != nil || c.lineages.superseded(h)
}

// see is told of each version of each request.
func (c *Controller) see(o any) {
	h, ok := o.(*held)
	if !ok {
		return
	}
	if _, ours := c.config.Signers[h.item.signer]; !ours {
		return
	}
	c.ledger.observe(h.item, h.uid, c.config.Now())
	if old, ok := c.lineages.see(h); ok {
		c.wake(old) // first: of two requests of a node the one that came last is taken first
	}
	if h.finished {
		c.ledger.forgetFinished(h.item, h.uid)
		c.unclaim(h.uid)
		c.budget.forget(h.item, last)
	}
	if c.concerns(h) {
		c.wake(h.item)
	}
}

// wake queues an item if there is anybody to take it.
func (c *Controller) wake(i item) {
	if c.leading.Load() {
		c.queue.add(i)
	}
}

func (c *Controller) remove(o any) {
	if d, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = d.Obj
	}
	if h, ok := o.(*held); ok {
		c.ledger.remove(h.item, h.uid)
		c.unclaim(h.uid)
		c.lineages.forget(h.uid)
		c.queue.forget(h.item)
		c.budget.forget(h.item, never)
		c.retries.Forget(h.item)
		c.waits.Forget(h.item)
	}
}

func itemOf(csr *certificatesv1.CertificateSigningRequest) item {
	return item{name: csr.Name, requester: csr.Spec.Username, signer: csr.Spec.SignerName}
}

func (c *Controller) observes() bool { return c.config.Mode == Observe }

func (c *Controller) signs() bool {
	return c.config.Mode == ApproveAndSign || c.config.Mode == SignOnly
}

func (c *Controller) approves() bool {
	return c.config.Mode == ApproveAndSign || c.config.Mode == ApproveOnly
}
