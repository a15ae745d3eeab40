// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/platform/watchretry"
)

const (
	// writeTimeout is how long one write may take: the management plane is on this host.
	writeTimeout = 5 * time.Second
	// rememberedGone is how many deleted objects are remembered, so that late news of them do not bring them back.
	rememberedGone = 1024
)

// ErrRefused means that the management plane does not take the entity: the service should have refused it before.
var ErrRefused = errors.New("the management plane refuses the entity")

// KubernetesConfig says where a Kubernetes store keeps its objects.
type KubernetesConfig struct {
	// Client of the management plane. It must know the kinds of v1alpha1 and Secrets.
	Client client.WithWatch
	Log    *slog.Logger
}

// Kubernetes is the Store whose entities are objects of the management plane. Reads come from informers and from what
// was written here since they last heard; writes go straight to the API server.
type Kubernetes struct {
	client  client.WithWatch
	log     *slog.Logger
	signals Signals
	ready   atomic.Bool

	mu      sync.Mutex
	records map[types.UID]record
	gone    map[types.UID]bool
	goneLog []types.UID // the oldest first
	state   *State      // nil when records have changed
}

// record is an object as it was last heard of.
type record struct {
	object  client.Object
	version uint64
	entity  Entity
}

// NewKubernetes makes a store. It knows nothing until Run has read the management plane.
func NewKubernetes(c KubernetesConfig) (*Kubernetes, error) {
	if c.Client == nil || c.Log == nil {
		return nil, errors.New("a store needs a client and a logger")
	}
	return &Kubernetes{client: c.Client, log: c.Log, records: map[types.UID]record{}, gone: map[types.UID]bool{}}, nil
}

// Run follows the management plane until the context ends. While that is away the store goes on with what it knows.
func (k *Kubernetes) Run(ctx context.Context) error {
	var group sync.WaitGroup
	defer group.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var synced []cache.InformerSynced
	for _, followed := range followedKinds() {
		informer := NewInformer(k.client, followed.object, followed.list, followed.namespace)
		informer.Handle(cache.ResourceEventHandlerFuncs{
			AddFunc:    k.heard,
			UpdateFunc: func(_, now any) { k.heard(now) },
			DeleteFunc: k.heardGone,
		})
		synced = append(synced, informer.HasSynced)
		group.Go(func() { informer.Run(ctx) })
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return ctx.Err()
	}
	k.ready.Store(true)
	k.signals.Tell()
	<-ctx.Done()
	return ctx.Err()
}

// followed is what the store hears of a kind.
type followed struct {
	object    client.Object
	list      client.ObjectList
	namespace string
}

// followedKinds returns the kinds of IAM, and the Secrets of access keys.
func followedKinds() []followed {
	var all []followed
	for _, kind := range v1alpha1.Kinds() {
		if kind.Identity {
			all = append(all, followed{kind.Object, kind.List, ""})
		}
	}
	return append(all, followed{&corev1.Secret{}, &corev1.SecretList{}, v1alpha1.NamespaceIAM})
}

// NewInformer follows the objects of one kind, and hears of a deletion within a second after an outage.
func NewInformer(c client.WithWatch, example client.Object, list client.ObjectList, namespace string) *watchretry.Informer {
	return watchretry.NewInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			into := list.DeepCopyObject().(client.ObjectList)
			err := c.List(ctx, into, &client.ListOptions{Namespace: namespace, Raw: &o})
			return into, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, list.DeepCopyObject().(client.ObjectList), &client.ListOptions{Namespace: namespace, Raw: &o})
		},
	}, example)
}

// State is what is known now.
func (k *Kubernetes) State() (*State, error) {
	if !k.ready.Load() {
		return nil, ErrNotReady
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state == nil {
		k.state = NewState(k.living())
	}
	return k.state, nil
}

// living are the entities that count, of two with the same unique id the one that was there first.
func (k *Kubernetes) living() []Held {
	renamed := map[[2]string]bool{} // unique id and name that are past
	records := make([]record, 0, len(k.records))
	for _, r := range k.records {
		if r.entity == nil {
			continue
		}
		if u, ok := r.object.(*v1alpha1.IAMUser); ok && u.Spec.RenamedFrom != "" {
			renamed[[2]string{u.Spec.UserID, u.Spec.RenamedFrom}] = true
		}
		if r.object.GetDeletionTimestamp() == nil { // an object that is being deleted is gone, however long finalizers keep it
			records = append(records, r)
		}
	}
	slices.SortFunc(records, func(a, b record) int {
		if d := a.object.GetCreationTimestamp().Compare(b.object.GetCreationTimestamp().Time); d != 0 {
			return d
		}
		return strings.Compare(a.object.GetName(), b.object.GetName())
	})
	all := make([]Held, 0, len(records))
	for _, r := range records {
		if u, ok := r.object.(*v1alpha1.IAMUser); ok && renamed[[2]string{u.Spec.UserID, u.Spec.Name}] {
			continue
		}
		all = append(all, Held{r.entity, r.object.GetResourceVersion()})
	}
	return all
}

// Changed tells of changes.
func (k *Kubernetes) Changed() (<-chan struct{}, func()) { return k.signals.Subscribe() }

// heard takes an object as it is now.
func (k *Kubernetes) heard(o any) {
	object, ok := o.(client.Object)
	if !ok {
		return
	}
	if secret, ok := object.(*corev1.Secret); ok && secret.Type != v1alpha1.SecretTypeAccessKey {
		return
	}
	version, _ := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	e, err := entity(object)
	if err != nil {
		k.log.Warn("passing over an object that contradicts itself", "object", object.GetName(), "error", err)
	}
	k.mu.Lock()
	uid := identify(object)
	if old, ok := k.records[uid]; k.gone[uid] || ok && old.version >= version && version != 0 {
		k.mu.Unlock()
		return
	}
	k.records[uid] = record{object, version, e}
	k.state = nil
	k.mu.Unlock()
	k.signals.Tell()
}

// heardGone takes that an object is gone.
func (k *Kubernetes) heardGone(o any) {
	object, ok := o.(client.Object)
	if !ok {
		return
	}
	k.mu.Lock()
	uid := identify(object)
	k.forget(uid)
	k.mu.Unlock()
	k.signals.Tell()
}

// forget removes a record forever. The lock is held.
func (k *Kubernetes) forget(uid types.UID) {
	delete(k.records, uid)
	k.state = nil
	if !k.gone[uid] {
		k.gone[uid] = true
		if k.goneLog = append(k.goneLog, uid); len(k.goneLog) > rememberedGone {
			delete(k.gone, k.goneLog[0])
			k.goneLog = k.goneLog[1:]
		}
	}
}

func identify(o client.Object) types.UID { return o.GetUID() }

// Create keeps a new entity.
func (k *Kubernetes) Create(ctx context.Context, e Entity) error {
	o, err := object(e)
	if err != nil {
		return err
	}
	return k.create(ctx, o)
}

func (k *Kubernetes) create(ctx context.Context, o client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := k.client.Create(ctx, o)
	switch {
	case apierrors.IsNotFound(err): // the kind, or its namespace
		return fmt.Errorf("%w: %w", errAway, err)
	case err != nil:
		return outcome(err)
	}
	k.heard(o)
	return nil
}

// Update replaces an entity. A new name of a user is a new object: it is made before the old one goes, and says that
// the old one counts no more, so that whatever happens in between the user has one name.
func (k *Kubernetes) Update(ctx context.Context, from *State, e Entity) error {
	old, ok := k.find(from, e)
	if !ok && k.has(e) {
		return ErrConflict
	}
	if !ok {
		return ErrDeleted
	}
	if user, ok := old.(*v1alpha1.IAMUser); ok && objectKey(e).Name != user.Name {
		return k.rename(ctx, user, e)
	}
	changed := old.DeepCopyObject().(client.Object)
	if err := fill(changed, e); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if err := k.client.Update(ctx, changed); err != nil {
		return outcome(err)
	}
	k.heard(changed)
	return nil
}

func (k *Kubernetes) rename(ctx context.Context, old *v1alpha1.IAMUser, e Entity) error {
	o, err := object(e)
	if err != nil {
		return err
	}
	o.(*v1alpha1.IAMUser).Spec.RenamedFrom = old.Spec.Name
	if err := k.create(ctx, o); err != nil {
		if left, ok := k.leftover(o); ok && errors.Is(err, ErrExists) { // of a renaming that was cut short
			if err := k.remove(ctx, left); err != nil {
				return err
			}
			err = k.create(ctx, o)
		}
		if err != nil {
			return err
		}
	}
	if err := k.remove(ctx, old); err != nil {
		k.log.Warn("an old name of a user is left; it counts no more", "object", old.Name, "error", err)
	}
	return nil
}

// leftover finds the object of that name if it is an old name of the same user.
func (k *Kubernetes) leftover(wanted client.Object) (client.Object, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.records {
		user, ok := r.object.(*v1alpha1.IAMUser)
		if ok && user.Name == wanted.GetName() && user.Spec.UserID == wanted.(*v1alpha1.IAMUser).Spec.UserID {
			return user, true
		}
	}
	return nil, false
}

// Delete removes an entity.
func (k *Kubernetes) Delete(ctx context.Context, from *State, e Entity) error {
	old, ok := k.find(from, e)
	if !ok && k.has(e) {
		return ErrConflict
	}
	if !ok {
		return nil
	}
	for _, other := range k.others(old, e) { // an old name that was left, by which the entity would come back
		if err := k.remove(ctx, other); err != nil {
			return err
		}
	}
	return k.remove(ctx, old)
}

// others are the objects with the unique id of an entity, but for its own.
func (k *Kubernetes) others(own client.Object, e Entity) []client.Object {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []client.Object
	for _, r := range k.records {
		if r.entity != nil && ID(r.entity) == ID(e) && identify(r.object) != identify(own) {
			all = append(all, r.object)
		}
	}
	return all
}

func (k *Kubernetes) remove(ctx context.Context, old client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	uid, version := old.GetUID(), old.GetResourceVersion()
	err := k.client.Delete(ctx, old, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if err != nil && !apierrors.IsNotFound(err) {
		return outcome(err)
	}
	k.mu.Lock()
	k.forget(identify(old))
	k.mu.Unlock()
	k.signals.Tell()
	return nil
}

// has reports whether there is an object with the unique id of an entity, in whatever state.
func (k *Kubernetes) has(e Entity) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.records {
		if r.entity != nil && ID(r.entity) == ID(e) {
			return true
		}
	}
	return false
}

// find is the object of an entity as it was in a state. An old name of a user has another object with the same unique
// id.
func (k *Kubernetes) find(from *State, e Entity) (client.Object, bool) {
	unique := ID(e)
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.records {
		if r.entity == nil || ID(r.entity) != unique || r.object.GetResourceVersion() != from.Revision(r.entity) {
			continue
		}
		if u, ok := r.entity.(iam.User); ok && u.Name != from.users[unique].Name {
			continue
		}
		return r.object, true
	}
	return nil, false
}

// outcome says what an error of the API server means here.
func outcome(err error) error {
	switch {
	case apierrors.IsAlreadyExists(err):
		return ErrExists
	case apierrors.IsConflict(err):
		return ErrConflict
	case apierrors.IsNotFound(err):
		return ErrDeleted
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsForbidden(err):
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return fmt.Errorf("%w: %w", errAway, err)
}
