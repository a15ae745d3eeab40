// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/identityservice"
)

// restarting is a management plane whose API server goes away and is started again. While it is away its watches end
// and it refuses connections. Once it is back it says of each watch of before that its resource version is too old, as
// the watch cache of a new API server does.
type restarting struct {
	client.WithWatch

	mu      sync.Mutex
	away    bool
	life    int
	listed  map[string]int // the life in which a kind was listed last
	watches []watch.Interface
}

func (r *restarting) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away = true
	r.life++
	for _, w := range r.watches {
		w.Stop()
	}
	r.watches = nil
}

func (r *restarting) start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away = false
}

func (r *restarting) refusal() error {
	if r.away {
		return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	return nil
}

func (r *restarting) List(ctx context.Context, list client.ObjectList, o ...client.ListOption) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.refusal(); err != nil {
		return err
	}
	r.listed[fmt.Sprintf("%T", list)] = r.life
	return r.WithWatch.List(ctx, list, o...)
}

func (r *restarting) Watch(ctx context.Context, list client.ObjectList, o ...client.ListOption) (watch.Interface, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.refusal(); err != nil {
		return nil, err
	}
	if r.listed[fmt.Sprintf("%T", list)] != r.life {
		w := watch.NewFakeWithChanSize(1, false)
		w.Error(&metav1.Status{Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired, Message: "too old resource version"})
		return w, nil
	}
	w, err := r.WithWatch.Watch(ctx, list, o...)
	if err == nil {
		r.watches = append(r.watches, w)
	}
	return w, err
}

// After an outage of a minute, a key that was removed while nobody could hear of it is refused within a second; so is
// the user that was deleted and made again under the name.
func TestRemovedInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plane := newPlane(t)
		r := &restarting{WithWatch: plane.WithWatch, listed: map[string]int{}}
		plane.WithWatch = r
		store := follow(t, plane)
		key := iam.AccessKey{ID: "AKIA" + "AAAAAAAAAAAAAAAA", Account: account, UserID: someUser("alice").ID, UserName: "alice", Secret: iam.SecretOf("s3cret"), Status: iam.Active}
		for _, e := range []identityservice.Entity{someUser("alice"), someUser("bob"), key} {
			if err := store.Create(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		changed, unsubscribe := store.Changed()
		defer unsubscribe()
		for range 5 { // the second outage and so on find pauses that have grown
			synctest.Wait()
			r.stop()
			<-time.After(time.Minute)
			r.start()
			<-time.After(10 * time.Second)
		}
		if _, ok := state(t, store).Key(key.ID); !ok {
			t.Fatal("the key is not known")
		}
		r.stop()
		<-time.After(time.Minute)
		behind := r.WithWatch
		var secrets corev1.SecretList
		var users v1alpha1.IAMUserList
		for _, list := range []client.ObjectList{&secrets, &users} {
			if err := behind.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}
		}
		for i := range secrets.Items {
			if err := behind.Delete(t.Context(), &secrets.Items[i]); err != nil {
				t.Fatal(err)
			}
		}
		for _, user := range users.Items {
			if user.Spec.Name != "bob" {
				continue
			}
			again := user.DeepCopy()
			again.ResourceVersion, again.Spec.UserID = "", "AIDA"+"CCCCCCCCCCCCCCCCC"
			if err := behind.Delete(t.Context(), &user); err != nil {
				t.Fatal(err)
			}
			if err := behind.Create(t.Context(), again); err != nil {
				t.Fatal(err)
			}
		}
		back := time.Now()
		r.start()
		until(t, changed, func() bool {
			now := state(t, store)
			_, left := now.Key(key.ID)
			bob, _ := now.User(account, "bob")
			return !left && bob.ID == "AIDA"+"CCCCCCCCCCCCCCCCC"
		})
		if took := time.Since(back); took > time.Second {
			t.Errorf("what was removed counted for %s more", took)
		}
		if n := len(state(t, store).Users(account)); n != 2 {
			t.Errorf("there are %d users, not alice and the new bob", n)
		}
	})
}
