// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/iam/identityservice/identityservicetest"
	"muster.dev/muster/internal/platform/watchretry/watchretrytest"
)

// plane is a management plane that fails on demand.
type plane struct {
	client.WithWatch
	fail atomic.Pointer[func(verb string, o client.Object) error]
}

func newPlane(t *testing.T) *plane {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	p := &plane{}
	var uids atomic.Int64
	ask := func(verb string, o client.Object) error {
		if fail := p.fail.Load(); fail != nil {
			return (*fail)(verb, o)
		}
		return nil
	}
	p.WithWatch = watchretrytest.Follow(fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			o.SetUID(types.UID(fmt.Sprint(uids.Add(1)))) // the fake gives none
			if err := ask("create", o); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if err := ask("update", o); err != nil {
				return err
			}
			return c.Update(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := ask("delete", o); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
	}).Build())
	return p
}

func (p *plane) failing(f func(verb string, o client.Object) error) {
	if f == nil {
		p.fail.Store(nil)
		return
	}
	p.fail.Store(&f)
}

// follow makes a store of the plane that has read it.
func follow(t *testing.T, p *plane) *identityservice.Kubernetes {
	t.Helper()
	store, err := identityservice.NewKubernetes(identityservice.KubernetesConfig{Client: p, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.State(); !errors.Is(err, identityservice.ErrNotReady) {
		t.Errorf("before it was read: %v", err)
	}
	changed, stop := store.Changed()
	defer stop()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = store.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	until(t, changed, func() bool { _, err := store.State(); return err == nil })
	return store
}

// until waits for a change after which it holds.
func until(t *testing.T, changed <-chan struct{}, holds func() bool) {
	t.Helper()
	timeout := time.After(30 * time.Second)
	for !holds() {
		select {
		case <-changed:
		case <-timeout:
			t.Fatal("it never came to hold")
		}
	}
}

func state(t *testing.T, s identityservice.Store) *identityservice.State {
	t.Helper()
	now, err := s.State()
	if err != nil {
		t.Fatal(err)
	}
	return now
}

var created = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func someUser(name string) iam.User {
	return iam.User{
		ID: "AIDA" + strings.Repeat(strings.ToUpper(name[:1]), 17), Account: account, Path: "/", Name: name, Created: created,
		Tags:   []iam.Tag{{Key: "k", Value: "v"}},
		Grants: iam.Grants{Attached: []string{"arn:aws:iam::aws:policy/IAMFullAccess"}, Inline: map[string]string{"p": "{}"}},
	}
}

func TestEntitiesComeBackAsTheyWereKept(t *testing.T) {
	p := newPlane(t)
	store := follow(t, p)
	role := iam.Role{
		ID: "AROA" + strings.Repeat("A", 17), Account: account, Path: "/a/", Name: "Role_+=,.@-x", Description: "d", Trust: "{}", MaxSession: time.Hour, Created: created,
		Grants: iam.Grants{Inline: map[string]string{"a": "1", "b": "2"}},
	}
	entities := []identityservice.Entity{
		someUser("alice"), role,
		iam.InstanceProfile{ID: "AIPA" + strings.Repeat("A", 17), Account: account, Path: "/", Name: "p", RoleID: role.ID, RoleName: role.Name, Created: created},
		iam.Policy{ID: "ANPA" + strings.Repeat("A", 17), Account: account, Path: "/", Name: "p", Default: "v1", Created: created, Updated: created, Versions: []iam.PolicyVersion{{ID: "v1", Document: "{}", Created: created}}},
		iam.AccessKey{ID: "AKIA" + strings.Repeat("A", 16), Account: account, UserID: someUser("alice").ID, UserName: "alice", Secret: iam.SecretOf("s3cret"), Status: iam.Active},
		iam.Account{ID: account, Alias: "lab"},
	}
	for _, e := range entities {
		if err := store.Create(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		if err := store.Create(t.Context(), e); !errors.Is(err, identityservice.ErrExists) {
			t.Errorf("%T twice: %v", e, err)
		}
	}
	again := follow(t, p) // as after a restart
	for what, s := range map[string]identityservice.Store{"who wrote them": store, "who reads them": again} {
		now := state(t, s)
		user, _ := now.User(account, "alice")
		gotRole, _ := now.Role(account, role.Name)
		key, _ := now.Key("AKIA" + strings.Repeat("A", 16))
		if diff := cmp.Diff(entities[0], identityservice.Entity(user)); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
		if diff := cmp.Diff(entities[1], identityservice.Entity(gotRole)); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
		if key.Secret.Reveal() != "s3cret" || !key.Usable() || key.UserName != "alice" {
			t.Errorf("%s: key %+v", what, key)
		}
		if profiles := now.ProfilesOf(role.ID); len(profiles) != 1 || profiles[0].Name != "p" {
			t.Errorf("%s: %+v", what, profiles)
		}
	}
}

func TestAChangeByOthersIsSeenAndNotOverwritten(t *testing.T) {
	p := newPlane(t)
	store := follow(t, p)
	ctx := t.Context()
	alice := someUser("alice")
	if err := store.Create(ctx, alice); err != nil {
		t.Fatal(err)
	}
	before := state(t, store)
	changed, stop := store.Changed()
	defer stop()
	var object v1alpha1.IAMUser
	if err := p.Get(ctx, client.ObjectKey{Name: account + ".alice"}, &object); err != nil {
		t.Fatal(err)
	}
	object.Labels = map[string]string{"theirs": "yes"}
	object.Spec.Tags = nil
	if err := p.Update(ctx, &object); err != nil {
		t.Fatal(err)
	}
	until(t, changed, func() bool { u, _ := state(t, store).User(account, "alice"); return len(u.Tags) == 0 })
	alice.Path = "/x/"
	if err := store.Update(ctx, before, alice); !errors.Is(err, identityservice.ErrConflict) {
		t.Errorf("from an old state: %v", err)
	}
	if err := store.Delete(ctx, before, alice); !errors.Is(err, identityservice.ErrConflict) {
		t.Errorf("deleting from an old state: %v", err)
	}
	if err := store.Update(ctx, state(t, store), alice); err != nil {
		t.Fatal(err)
	}
	if err := p.Get(ctx, client.ObjectKey{Name: account + ".alice"}, &object); err != nil || object.Labels["theirs"] != "yes" || object.Spec.Path != "/x/" {
		t.Errorf("%+v, %v", object, err)
	}
	if err := p.Delete(ctx, &object); err != nil {
		t.Fatal(err)
	}
	until(t, changed, func() bool { return !state(t, store).HasAccount(account) && len(state(t, store).Users(account)) == 0 })
	if err := store.Delete(ctx, state(t, store), alice); err != nil {
		t.Errorf("deleting what is gone: %v", err)
	}
	if err := store.Update(ctx, before, alice); !errors.Is(err, identityservice.ErrDeleted) {
		t.Errorf("updating what is gone: %v", err)
	}
}

func TestErrorsOfThePlane(t *testing.T) {
	p := newPlane(t)
	store := follow(t, p)
	gr := v1alpha1.GroupVersion.WithResource("iamusers").GroupResource()
	for _, test := range []struct{ err, want error }{
		{apierrors.NewConflict(gr, "x", errors.New("x")), identityservice.ErrConflict},
		{apierrors.NewNotFound(gr, "x"), identityservice.ErrAway()},
		{apierrors.NewAlreadyExists(gr, "x"), identityservice.ErrExists},
		{apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("IAMUser").GroupKind(), "x", nil), identityservice.ErrRefused},
		{apierrors.NewServiceUnavailable("x"), identityservice.ErrAway()},
		{errors.New("connection refused"), identityservice.ErrAway()},
		{context.DeadlineExceeded, identityservice.ErrAway()},
	} {
		p.failing(func(string, client.Object) error { return test.err })
		if err := store.Create(t.Context(), someUser("alice")); !errors.Is(err, test.want) {
			t.Errorf("%v: %v, want %v", test.err, err, test.want)
		}
		if len(state(t, store).Users(account)) != 0 {
			t.Error("what was not written is there")
		}
	}
}

// The deletion of an object ends what hangs on it, and a finalizer that keeps the object does not put that off.
func TestWhatIsBeingDeletedIsGone(t *testing.T) {
	p := newPlane(t)
	store := follow(t, p)
	changed, stop := store.Changed()
	defer stop()
	user := someUser("alice")
	key, err := iam.NewAccessKey(user, created, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	role := iam.Role{ID: "AROA" + strings.Repeat("R", 17), Account: account, Path: "/", Name: "app", Created: created, Trust: "{}", MaxSession: time.Hour}
	for _, e := range []identityservice.Entity{user, key, role} {
		if err := store.Create(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	there := func(s identityservice.Store) (n int) {
		now := state(t, s)
		for _, find := range []func() bool{
			func() bool { _, ok := now.UserByID(user.ID); return ok },
			func() bool { _, ok := now.Key(key.ID); return ok },
			func() bool { _, ok := now.RoleByID(role.ID); return ok },
		} {
			if find() {
				n++
			}
		}
		return n
	}
	until(t, changed, func() bool { return there(store) == 3 })
	for _, o := range []client.Object{
		&v1alpha1.IAMUser{ObjectMeta: metav1.ObjectMeta{Name: account + ".alice"}}, &v1alpha1.IAMRole{ObjectMeta: metav1.ObjectMeta{Name: account + ".app"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.NamespaceIAM, Name: strings.ToLower(key.ID)}},
	} {
		if err := p.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
		o.SetFinalizers([]string{"example.org/wait"})
		if err := errors.Join(p.Update(t.Context(), o), p.Delete(t.Context(), o)); err != nil {
			t.Fatal(err)
		}
	}
	until(t, changed, func() bool { return there(store) == 0 })
	if n := there(follow(t, p)); n != 0 {
		t.Errorf("%d are back after a restart", n)
	}
}

func TestObjectsThatContradictThemselvesArePassedOver(t *testing.T) {
	p := newPlane(t)
	ctx := t.Context()
	for _, o := range []client.Object{
		&v1alpha1.IAMUser{Spec: v1alpha1.IAMUserSpec{IAMName: v1alpha1.IAMName{Account: account, Path: "/", Name: "eve", ARN: "arn:aws:iam::000000000000:user/admin"}, UserID: "AIDAEEEEEEEEEEEEEEEEE"}},
		&v1alpha1.IAMUser{Spec: v1alpha1.IAMUserSpec{IAMName: v1alpha1.IAMName{Account: account, Path: "/", Name: "mallory", ARN: "arn:aws:iam::000000000000:user/mallory"}, UserID: "AIDAEEEEEEEEEEEEEEEEE"}},
		&corev1.Secret{Type: v1alpha1.SecretTypeAccessKey, Data: map[string][]byte{"accessKeyId": []byte("AKIAAAAAAAAAAAAAAAAA"), "secretAccessKey": []byte("x"), "userId": []byte("AIDAEEEEEEEEEEEEEEEEE")}},
		&corev1.Secret{Type: "Opaque"},
	} {
		o.SetName(account + ".eve")
		if secret, ok := o.(*corev1.Secret); ok {
			secret.Namespace, secret.Name = v1alpha1.NamespaceIAM, "akiaaaaaaaaaaaaaaaaa"
			if secret.Type == "Opaque" {
				secret.Name = "other"
			}
		}
		if err := p.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	now := state(t, follow(t, p))
	if users := now.Users(account); len(users) != 0 {
		t.Errorf("%+v", users)
	}
	if key, ok := now.Key("AKIAAAAAAAAAAAAAAAAA"); ok {
		t.Errorf("%+v: its label does not say whose it is", key)
	}
}

// Whatever is killed in between, the next run makes an account whose first key is in the file and works.
func TestFirstUserAfterBeingKilled(t *testing.T) {
	for writes := range 6 {
		t.Run(fmt.Sprintf("after %d writes", writes), func(t *testing.T) {
			store := identityservicetest.NewMemory()
			file := filepath.Join(t.TempDir(), "iam", "credentials")
			store.Fail = func(n int, _ identityservice.Entity) error {
				if n >= writes {
					return errors.New("killed")
				}
				return nil
			}
			made, err := identityservice.First(t.Context(), store, account, file, time.Now())
			if writes < 5 && (err == nil || made) {
				t.Fatalf("killed, and made: %v %v", made, err)
			}
			store.Fail = nil
			if _, err := identityservice.First(t.Context(), store, account, file, time.Now()); err != nil {
				t.Fatal(err)
			}
			now := state(t, store)
			admin, ok := now.User(account, "admin")
			keys := now.KeysOf(admin.ID)
			if !ok || len(keys) != 1 || len(now.Users(account)) != 1 || len(now.Roles(account)) != 1 || !now.HasAccount(account) {
				t.Fatalf("%+v %+v", admin, keys)
			}
			holds(t, file, keys[0].ID, keys[0].Secret.Reveal())
			if err := store.Delete(t.Context(), now, keys[0]); err != nil {
				t.Fatal(err)
			}
			if made, err := identityservice.First(t.Context(), store, account, file, time.Now()); made || err != nil || len(state(t, store).KeysOf(admin.ID)) != 0 {
				t.Error("a key that was deleted came back", made, err)
			}
		})
	}
}
