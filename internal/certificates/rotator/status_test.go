// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/certificates/rotation"
)

// The status of a cluster follows from the record alone, in each phase.
func TestKubeletAuthorities(t *testing.T) {
	store, now := authority.NewStore(t.TempDir()), time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	if _, err := store.Ensure(nil, now); err != nil {
		t.Fatal(err)
	}
	const id = "ca-0123456789abcdef0"
	told := func() string {
		t.Helper()
		k, err := store.Kubelets()
		if err != nil {
			t.Fatal(err)
		}
		all, err := KubeletAuthorities(store, k, "waits", now)
		if err != nil {
			t.Fatal(err)
		}
		var text []string
		for _, a := range all {
			if a.Data == "" || a.ID == "" || !a.NotAfter.After(now) || a.Asked != (a.ID == id) {
				t.Errorf("%+v", a)
			}
			text = append(text, fmt.Sprintf("%s signs=%v %s removable=%v %s", a.Name, a.Signs, a.Distribution, a.Removable, a.Message))
		}
		return strings.Join(text, "; ")
	}
	expect := func(want string) {
		t.Helper()
		if got := told(); got != want {
			t.Errorf("told %s\nwant %s", got, want)
		}
	}
	ask := func(n int, step authority.Step, of string) {
		t.Helper()
		if refused, err := store.Ask(authority.Request{ID: fmt.Sprint(n), Step: step, Authority: of}, now); err != nil || refused != "" {
			t.Fatal(refused, err)
		}
	}
	look := func() {
		t.Helper()
		k, err := store.Kubelets()
		if err != nil {
			t.Fatal(err)
		}
		next, _ := k.Rotation.Next(rotation.Observation{}, now)
		if err := store.Advance(*k.Rotation, next, now); err != nil {
			t.Fatal(err)
		}
	}
	expect("kubelet-1 signs=true Complete removable=false ")
	ask(1, authority.StepCreate, id)
	expect("kubelet-1 signs=true Complete removable=false ; kubelet-2 signs=false InProgress removable=true waits")
	look()
	expect("kubelet-1 signs=true Complete removable=false ; kubelet-2 signs=false Complete removable=true waits")
	ask(2, authority.StepActivate, id)
	look()
	expect("kubelet-1 signs=false Complete removable=false waits; kubelet-2 signs=true Complete removable=false ")
	look()
	now = now.Add(rotation.Grace)
	expect("kubelet-1 signs=false Complete removable=true waits; kubelet-2 signs=true Complete removable=false ")
	k, err := store.Kubelets()
	if err != nil {
		t.Fatal(err)
	}
	first, err := store.IDOf(k, "kubelet-1")
	if err != nil {
		t.Fatal(err)
	}
	ask(3, authority.StepDelete, first)
	look()
	expect("kubelet-2 signs=true Complete removable=false ; kubelet-1 signs=false Deleting removable=false waits")
	look()
	expect("kubelet-2 signs=true Complete removable=false ")
}
