// SPDX-License-Identifier: Apache-2.0

package principalid

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	"muster.dev/muster/api/v1alpha1"
)

// Binder writes the id of the user or role into each access entry; an id is never given to another. EKS does so when an
// entry is made, and refuses one for a principal that is not there. Here kubectl makes entries, so the binder follows
// right after.
//
//	what happens                                        the entry
//	its principal is there when it is made              is for that one, whatever becomes of the name
//	its principal is made, or renamed to it, later      is for nobody, and says so; it is not looked at again
//	the management plane is away                        waits, and lets nobody in until then
//	somebody writes the id                              is for that one
type Binder struct {
	management client.Reader
	cluster    client.Client
	log        *slog.Logger
	now        func() time.Time
}

// New returns a binder of the entries of one cluster. It reads users and roles from the management plane, past any
// cache: one that was made a moment ago counts.
func New(management client.Reader, cluster client.Client, log *slog.Logger) Binder {
	return Binder{management: management, cluster: cluster, log: log, now: time.Now}
}

// principal is a user or a role that is there.
type principal struct {
	id string
	// since is the time since which it has had its ARN.
	since time.Time
}

// bind looks after one entry.
func (p Binder) bind(ctx context.Context, name string) error {
	entry := &accessv1alpha1.AccessEntry{}
	if err := p.cluster.Get(ctx, client.ObjectKey{Name: name}, entry); err != nil {
		return client.IgnoreNotFound(err)
	}
	known := meta.FindStatusCondition(entry.Status.Conditions, accessv1alpha1.ConditionPrincipalKnown)
	switch {
	case entry.DeletionTimestamp != nil:
		return nil
	case entry.Spec.PrincipalID != "":
		if known == nil || known.Status == metav1.ConditionTrue {
			return nil
		}
		return p.tell(ctx, entry, metav1.ConditionTrue, "Recorded", "the entry is for "+entry.Spec.PrincipalID)
	case known != nil && known.Status == metav1.ConditionFalse:
		return nil
	}
	found, ok, err := p.find(ctx, entry.Spec.PrincipalARN)
	if err != nil {
		return err
	}
	const remedy = "nobody is let in by this entry: make sure of the principal, then delete the entry and make it again"
	switch {
	case !ok:
		return p.tell(ctx, entry, metav1.ConditionFalse, "NoPrincipal", fmt.Sprintf("there was no %s when the entry was made, and %s", entry.Spec.PrincipalARN, remedy))
	case found.since.After(entry.CreationTimestamp.Time):
		return p.tell(ctx, entry, metav1.ConditionFalse, "NewerPrincipal", fmt.Sprintf("%s has been %s since %s only, which is after the entry was made, and %s",
			found.id, entry.Spec.PrincipalARN, found.since.UTC().Format(time.RFC3339), remedy))
	}
	was := entry.DeepCopy()
	entry.Spec.PrincipalID = found.id
	if err := p.cluster.Patch(ctx, entry, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("recording the principal of access entry %s: %w", name, err)
	}
	p.log.Info("access entry is for", "entry", name, "principal", entry.Spec.PrincipalARN, "id", found.id)
	return nil
}

// find returns the user or role that has an ARN now.
func (p Binder) find(ctx context.Context, arn string) (principal, bool, error) {
	var users v1alpha1.IAMUserList
	var roles v1alpha1.IAMRoleList
	if err := p.management.List(ctx, &users); err != nil {
		return principal{}, false, fmt.Errorf("looking for %s: %w", arn, err)
	}
	if err := p.management.List(ctx, &roles); err != nil {
		return principal{}, false, fmt.Errorf("looking for %s: %w", arn, err)
	}
	for i := range users.Items {
		if u := &users.Items[i]; u.Spec.ARN == arn && u.DeletionTimestamp == nil {
			return principal{u.Spec.UserID, since(u.Spec.Created, u.CreationTimestamp)}, true, nil
		}
	}
	for i := range roles.Items {
		if r := &roles.Items[i]; r.Spec.ARN == arn && r.DeletionTimestamp == nil {
			return principal{r.Spec.RoleID, since(r.Spec.Created, r.CreationTimestamp)}, true, nil
		}
	}
	return principal{}, false, nil
}

// since returns the later of two times: of the principal's creation, and of its object's, which is made anew for
// another name.
func since(made, object metav1.Time) time.Time {
	if object.After(made.Time) {
		return object.Time
	}
	return made.Time
}

func (p Binder) tell(ctx context.Context, entry *accessv1alpha1.AccessEntry, status metav1.ConditionStatus, reason, message string) error {
	was := entry.DeepCopy()
	meta.SetStatusCondition(&entry.Status.Conditions, metav1.Condition{
		Type: accessv1alpha1.ConditionPrincipalKnown, Status: status, Reason: reason, Message: message,
		ObservedGeneration: entry.Generation, LastTransitionTime: metav1.NewTime(p.now()),
	})
	if err := p.cluster.Status().Patch(ctx, entry, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the status of access entry %s: %w", entry.Name, err)
	}
	p.log.Info("access entry", "entry", entry.Name, "reason", reason, "message", message)
	return nil
}

// Run binds all entries until the context ends, each as soon as it is made.
func (p Binder) Run(ctx context.Context, entries cache.ListerWatcher) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](50*time.Millisecond, 5*time.Second))
	informer := cache.NewSharedInformer(entries, &accessv1alpha1.AccessEntry{}, 0)
	add := func(o any) {
		if e, ok := o.(*accessv1alpha1.AccessEntry); ok {
			queue.Add(e.Name)
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, after any) { add(after) }}); err != nil {
		p.log.Warn("access entries are not watched", "error", err)
		return
	}
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { informer.RunWithContext(ctx) })
	defer context.AfterFunc(ctx, queue.ShutDown)()
	for {
		name, ended := queue.Get()
		if ended {
			return
		}
		err := p.bind(ctx, name)
		switch {
		case err == nil:
			queue.Forget(name)
		case ctx.Err() == nil:
			if !apierrors.IsConflict(err) && queue.NumRequeues(name) == 0 {
				p.log.Warn("recording the principal of an access entry failed and is tried again", "entry", name, "error", err)
			}
			queue.AddRateLimited(name)
		}
		queue.Done(name)
	}
}
