// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"log/slog"
	"testing"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/certificates/rotation"
)

func TestStartAgainIsTheSameRotation(t *testing.T) {
	keys := NewKeys(authority.NewStore(t.TempDir()))
	k := NewKubelets(keys, slog.New(slog.DiscardHandler))
	if err := k.Start(); err == nil {
		t.Error("a rotation of nothing: no error")
	}
	if _, err := keys.Ensure(nil, time.Now()); err != nil {
		t.Fatal(err)
	}
	k.Report("for you", nil)
	if _, waits, _, err := k.Rotation(); err != nil || waits != "" {
		t.Errorf("before a rotation it waits %q, %v", waits, err)
	}
	var first rotation.Rotation
	for i := range 2 {
		if err := k.Start(); err != nil {
			t.Fatal(err)
		}
		k.Report("for you", &rotation.Progress{Nodes: 3})
		k.Report("for you", nil)
		record, waits, progress, err := k.Rotation()
		if err != nil || waits != "for you" || progress == nil || progress.Nodes != 3 {
			t.Fatalf("it waits %q, %+v, %v", waits, progress, err)
		}
		if i == 0 {
			first = *record.Rotation
		}
		if *record.Rotation != first || len(k.wake) != 1 {
			t.Errorf("asked again it begins another one: %+v, then %+v; %d looks", first, record.Rotation, len(k.wake))
		}
	}
}

func TestAnswer(t *testing.T) {
	keys := NewKeys(authority.NewStore(t.TempDir()))
	k := NewKubelets(keys, slog.New(slog.DiscardHandler))
	if _, err := keys.Ensure(nil, time.Now()); err != nil {
		t.Fatal(err)
	}
	all, answer, err := k.Answer(nil)
	if err != nil || len(all) != 1 || answer != nil || len(k.wake) != 0 {
		t.Fatalf("%+v, %+v, %v", all, answer, err)
	}
	request := &v1alpha1.KubeletAuthorityRequest{ID: "1", Step: "Nonsense", Authority: all[0].ID}
	for range 2 {
		all, answer, err = k.Answer(request)
		if err != nil || len(all) != 1 || answer == nil || answer.ID != "1" || answer.Refused == "" || len(k.wake) != 1 {
			t.Errorf("%+v, %+v, %v, %d looks", all, answer, err, len(k.wake))
		}
	}
}
