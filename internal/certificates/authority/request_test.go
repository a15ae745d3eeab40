// SPDX-License-Identifier: Apache-2.0

package authority_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/certificates/rotation"
)

// prepared is a store with its first authorities.
func prepared(t *testing.T) store {
	t.Helper()
	s := newStore(t)
	if _, err := s.Ensure(nil, start); err != nil {
		t.Fatal(err)
	}
	return s
}

// ask sends a request, twice as a controller does, and says what it is refused with.
func (s store) ask(id string, step authority.Step, of string, now time.Time) string {
	s.Helper()
	before := ""
	for range 2 {
		refused, err := s.Ask(authority.Request{ID: id, Step: step, Authority: of}, now)
		if err != nil {
			s.Fatal(err)
		}
		if before != "" && refused != before {
			s.Errorf("%s %s is answered %q, and before %q", step, of, refused, before)
		}
		before = refused
	}
	return before
}

// look moves a rotation on as somebody does who has seen all that it waits for.
func (s store) look(now time.Time) authority.Kubelets {
	s.Helper()
	k, err := s.Kubelets()
	if err != nil || k.Rotation == nil {
		s.Fatalf("no rotation is under way (%v)", err)
	}
	next, _ := k.Rotation.Next(rotation.Observation{}, now)
	if err := s.Advance(*k.Rotation, next, now); err != nil {
		s.Fatal(err)
	}
	k, err = s.Kubelets()
	if err != nil {
		s.Fatal(err)
	}
	return k
}

func (s store) expectRefusal(got, says string) {
	s.Helper()
	if !strings.Contains(got, says) || (got == "") != (says == "") {
		s.Errorf("refused with %q, want %q", got, says)
	}
}

const (
	newID = "ca-0123456789abcdef0"
	third = "ca-0123456789abcdef1"
)

// Each step is asked for, and nothing goes on by itself in between.
func TestStepsThatAreAskedFor(t *testing.T) {
	s := prepared(t)
	k, err := s.Kubelets()
	if err != nil {
		t.Fatal(err)
	}
	first, err := s.IDOf(k, "kubelet-1")
	if err != nil || !strings.HasPrefix(first, "ca-") || len(first) != 20 {
		t.Fatal(first, err)
	}
	now := start
	s.expectRefusal(s.ask("1", authority.StepDelete, first, now), "kubelet-1 signs")
	s.expectRefusal(s.ask("2", authority.StepActivate, newID, now), "there is no authority")
	s.expectRefusal(s.ask("3", authority.StepCreate, newID, now), "")
	s.expectRefusal(s.ask("4", authority.StepCreate, third, now), "there are two already, kubelet-1 and kubelet-2")
	s.expectRefusal(s.ask("5", authority.StepActivate, newID, now), "not trusted everywhere yet")
	for range 3 {
		now = now.Add(time.Hour)
		if k = s.look(now); k.Signs() != "kubelet-1" || !k.Rotation.Resting() || k.IDs["kubelet-2"] != newID {
			t.Fatalf("%+v", k)
		}
	}
	s.expectRefusal(s.ask("6", authority.StepActivate, newID, now), "")
	if k = s.look(now); k.Signs() != "kubelet-2" {
		t.Errorf("%s signs", k.Signs())
	}
	s.expectRefusal(s.ask("7", authority.StepActivate, first, now), "does not go back")
	s.expectRefusal(s.ask("8", authority.StepDelete, newID, now), "kubelet-2 signs")
	s.expectRefusal(s.ask("9", authority.StepDelete, first, now), "nodes may still use")
	s.look(now)
	for range 3 {
		now = now.Add(rotation.Grace)
		if k = s.look(now); k.Rotation.Phase != rotation.Replace || !slices.Contains(k.Trusts(), "kubelet-1") {
			t.Fatalf("%+v", k.Rotation)
		}
	}
	s.expectRefusal(s.ask("10", authority.StepDelete, first, now), "")
	if k = s.look(now); slices.Contains(k.Trusts(), "kubelet-1") {
		t.Errorf("%v are trusted", k.Trusts())
	}
	if k = s.look(now); k.Rotation != nil || k.Current != "kubelet-2" || k.IDs["kubelet-2"] != newID {
		t.Errorf("%+v", k)
	}
}

// An authority that has not signed is given up, and its name is not used again.
func TestASuccessorIsGivenUp(t *testing.T) {
	s := prepared(t)
	s.expectRefusal(s.ask("1", authority.StepCreate, newID, start), "")
	s.expectRefusal(s.ask("2", authority.StepDelete, newID, start), "")
	k, err := s.Kubelets()
	if err != nil || !slices.Equal(k.Trusts(), []string{"kubelet-1"}) || k.Signs() != "kubelet-1" || k.Rotation.Phase != rotation.Withdraw {
		t.Fatalf("%+v, %v", k, err)
	}
	s.expectRefusal(s.ask("3", authority.StepCreate, third, start), "there are two already")
	if k = s.look(start); k.Rotation != nil || k.Current != "kubelet-1" || len(k.IDs) != 0 {
		t.Errorf("%+v", k)
	}
	if _, err := s.KubeletAuthority("kubelet-2"); err == nil {
		t.Error("its key is left")
	}
	s.expectRefusal(s.ask("4", authority.StepCreate, third, start), "")
	if k, err = s.Kubelets(); err != nil || k.Rotation.New != "kubelet-3" {
		t.Errorf("%+v, %v", k.Rotation, err)
	}
}

// A rotation that `muster certs rotate` begins, or finds held, goes on by itself. Facts that were seen before a step
// was asked for do not undo the step.
func TestStepsBesideARotation(t *testing.T) {
	s := prepared(t)
	s.rotate()
	s.expectRefusal(s.ask("1", authority.StepCreate, newID, start), "there are two already")
	k, err := s.Kubelets()
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.IDOf(k, "kubelet-2")
	if err != nil {
		t.Fatal(err)
	}
	s.expectRefusal(s.ask("2", authority.StepDelete, second, start), "goes on by itself")

	s = prepared(t)
	s.expectRefusal(s.ask("1", authority.StepCreate, newID, start), "")
	if k, err = s.Kubelets(); err != nil {
		t.Fatal(err)
	}
	before := *k.Rotation
	stale, _ := before.Next(rotation.Observation{}, start)
	s.expectRefusal(s.ask("2", authority.StepDelete, newID, start), "")
	if err := s.Advance(before, stale, start); err != nil {
		t.Fatal(err)
	}
	if k, err = s.Kubelets(); err != nil || k.Rotation.Phase != rotation.Withdraw {
		t.Errorf("%+v, %v", k.Rotation, err)
	}
	s = prepared(t)
	s.expectRefusal(s.ask("1", authority.StepCreate, newID, start), "")
	s.rotate()
	if k, err = s.Kubelets(); err != nil || k.Rotation.Hold != "" || k.Rotation.New != "kubelet-2" {
		t.Errorf("%+v, %v", k.Rotation, err)
	}
}
