// SPDX-License-Identifier: Apache-2.0

package change

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
)

func TestUpdateTime(t *testing.T) {
	second := metav1.NewTime(time.Date(2026, 11, 27, 13, 0, 0, 0, time.UTC))
	update := func(name string) v1alpha1.Update {
		return v1alpha1.Update{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: second}}
	}
	for name, want := range map[string]time.Time{
		"017f22e2-79b0-7cc3-98c4-dc0c0c07398f": time.UnixMilli(1645557742000), // the example of RFC 9562
		"01658205-cd58-40b6-b44b-2981d8a1885b": second.Time,                   // version 4, which earlier Musters made
		"by-kubectl":                           second.Time,
	} {
		if got := Time(update(name)); !got.Equal(want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	before := time.Now().Truncate(time.Millisecond)
	got := Time(update(newID()))
	if got.Before(before) || got.After(time.Now()) {
		t.Errorf("an id of now says %s, and it was %s", got, before)
	}
}
