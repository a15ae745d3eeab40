// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"reflect"
	"strings"
	"testing"

	"muster.dev/muster/api/v1alpha1"
)

// The store follows the kinds that it can read as entities, and no other.
func TestTheStoreFollowsWhatItReads(t *testing.T) {
	follows := map[reflect.Type]bool{}
	for _, f := range followedKinds() {
		follows[reflect.TypeOf(f.object)] = true
	}
	for _, kind := range v1alpha1.Kinds() {
		_, err := entity(kind.Object)
		reads := err == nil || !strings.HasSuffix(err.Error(), "is not an entity")
		if got := follows[reflect.TypeOf(kind.Object)]; got != reads || got != kind.Identity {
			t.Errorf("%s: followed: %v; read as an entity: %v; of IAM in the list of kinds: %v", kind.Name(), got, reads, kind.Identity)
		}
	}
}
